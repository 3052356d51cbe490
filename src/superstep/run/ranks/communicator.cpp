#include "superstep/run/ranks/communicator.h"

#include <algorithm>
#include <cstdlib>

namespace superstep::run {
namespace {

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

int number(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

// The first of these that is set.
int first_number(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names)
    if (is_set(name)) return number(name, otherwise);
  return otherwise;
}

}  // namespace

// What Open MPI and launchers of the PMI and PMIx kinds set.
int launched_rank() {
  return first_number({"OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}, 0);
}

// PMIx tells no number in the environment; srun does, and so does a step of it without any MPI (sbatch sets
// the number of tasks as well, but no step: a script runs once).
int launched_size() {
  const int said = first_number({"OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE"}, 0);
  const int of_step = is_set("SLURM_STEP_ID") ? number("SLURM_STEP_NUM_TASKS", 1) : 1;
  return std::max(1, said > 0 ? said : of_step);
}

bool launched_by_pmix() { return is_set("PMIX_RANK") && is_set("PMIX_NAMESPACE"); }

Communicator& communicator() {
  static const std::unique_ptr<Communicator> world = make_communicator();
  return *world;
}

}  // namespace superstep::run
