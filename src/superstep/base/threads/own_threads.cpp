#include "superstep/base/threads/own_threads.h"

#include <fmt/format.h>

#include <system_error>

#include "superstep/base/error.h"

namespace superstep {

std::thread start_thread(std::function<void()> main) {
  try {
    return std::thread(std::move(main));
  } catch (const std::system_error& refused) {
    throw Error(ErrorCode::io,
                fmt::format("the system starts no further thread: {}", refused.code().message()), {},
                "give fewer --threads, or raise the limit on processes (ulimit -u)");
  }
}

}  // namespace superstep
