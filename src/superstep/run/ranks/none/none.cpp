// A build without MPI.
#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/run/ranks/alone.h"

namespace superstep::run {

bool has_ranks() { return false; }
std::string ranks_library() { return {}; }

std::unique_ptr<Communicator> make_communicator() {
  if (launched_size() > 1)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("was started as {} ranks, but this program was built without MPI", launched_size()),
        "superstep", "install an MPI library with its headers and configure again, or start it alone");
  return std::make_unique<Alone>();
}

}  // namespace superstep::run
