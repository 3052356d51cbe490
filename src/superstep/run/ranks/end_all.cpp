#include "superstep/run/ranks/end_all.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "superstep/base/printable.h"

namespace superstep::run {

void end_all_ranks(Communicator& world, const Error& error) {
  if (world.rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  fmt::print(stderr, "superstep: error: rank {} of {}: {}\n", world.rank(), world.size(),
             printable_lines(error.what()));
  world.abort(error.code() == ErrorCode::invalid_argument ? 2 : 1);
  std::unreachable();  // a virtual function's [[noreturn]] is not seen through the call
}

}  // namespace superstep::run
