#include "superstep/run/ranks/communicator.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

namespace superstep::run {
namespace {

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

int number(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

// What Open MPI and launchers of the PMI and PMIx kinds set.
constexpr std::array rank_names{"OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
constexpr std::array size_names{"OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE"};
constexpr const char *pmix_namespace = "PMIX_NAMESPACE", *slurm_step = "SLURM_STEP_ID",
                     *slurm_tasks = "SLURM_STEP_NUM_TASKS";
// What is read elsewhere: ranks of a host among themselves.
constexpr std::array local_names{"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};

// The first of these that is set.
int first_number(std::span<const char* const> names, int otherwise) {
  for (const char* name : names)
    if (is_set(name)) return number(name, otherwise);
  return otherwise;
}

}  // namespace

int launched_rank() { return first_number(rank_names, 0); }

// PMIx tells no number in the environment; srun does, and so does a step of it without any MPI (sbatch sets
// the number of tasks as well, but no step: a script runs once).
int launched_size() {
  const int said = first_number(size_names, 0);
  const int of_step = is_set(slurm_step) ? number(slurm_tasks, 1) : 1;
  return std::max(1, said > 0 ? said : of_step);
}

bool launched_by_pmix() { return is_set("PMIX_RANK") && is_set(pmix_namespace); }

void leave_ranks() {
  for (const std::span<const char* const> names :
       {std::span<const char* const>(rank_names), {size_names}, {local_names}})
    for (const char* const name : names) ::unsetenv(name);
  for (const char* const name : {pmix_namespace, slurm_step, slurm_tasks}) ::unsetenv(name);
}

Communicator& communicator() {
  static const std::unique_ptr<Communicator> world = make_communicator();
  return *world;
}

}  // namespace superstep::run
