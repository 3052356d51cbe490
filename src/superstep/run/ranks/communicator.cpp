#include "superstep/run/ranks/communicator.h"

#include <algorithm>
#include <cstdlib>



namespace superstep::run {
namespace {

// What Open MPI and launchers of the PMI kind set.
int first_number(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names)
    if (const char* text = std::getenv(name)) return std::atoi(text);
  return otherwise;
}

}  // namespace

int launched_rank() { return first_number({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}, 0); }
int launched_size() { return std::max(1, first_number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 1)); }

Communicator& communicator() {
  static const std::unique_ptr<Communicator> world = make_communicator();
  return *world;
}

}  // namespace superstep::run
