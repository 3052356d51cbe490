#include "superstep/base/system/own_threads.h"

#include <fmt/format.h>

#include <atomic>
#include <system_error>
#include <vector>

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

void on_own_threads(int threads, FunctionRef<void(int index)> main) {
  enum : int { waiting, begun, given_up };
  std::atomic<int> state{waiting};
  std::vector<std::thread> started;
  const auto release = [&](int as) {
    state.store(as);
    state.notify_all();
    for (std::thread& thread : started) thread.join();
  };
  try {
    for (int index = 0; index < threads; ++index)
      started.push_back(start_thread([&state, main, index] {
        state.wait(waiting);
        if (state.load() == begun) main(index);
      }));
  } catch (...) {
    release(given_up);
    throw;
  }
  release(begun);
}

}  // namespace superstep
