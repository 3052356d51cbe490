#include "superstep/base/threads/run_together.h"

#include <algorithm>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

namespace superstep {

void run_together(int wanted, FunctionRef<void(int threads)> prepare, FunctionRef<void(int index)> body) {
  std::latch counted(1);
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(std::max(1, wanted)));
  try {
    for (int index = 0; index < wanted; ++index)
      threads.emplace_back([&counted, body, index] {
        counted.wait();
        body(index);
      });
  } catch (const std::system_error&) {
  }
  prepare(std::max(1, static_cast<int>(threads.size())));
  counted.count_down();
  if (threads.empty()) body(0);
}

}  // namespace superstep
