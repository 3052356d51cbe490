#include "superstep/base/threads/startable_threads.h"

#include <chrono>
#include <filesystem>
#include <iterator>
#include <latch>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace superstep {

namespace {

std::ptrdiff_t thread_count_now() {
  std::error_code ignored;
  return std::distance(std::filesystem::directory_iterator("/proc/self/task", ignored), {});
}

// A thread that was joined counts until the system has cleared it away, a moment later.
void wait_until_gone(std::ptrdiff_t before) {
  for (int i = 0; i < 200 && thread_count_now() > before; ++i)
    std::this_thread::sleep_for(std::chrono::microseconds(500));
}

}  // namespace

int startable_threads(int wanted) {
  const std::ptrdiff_t before = thread_count_now();
  std::latch counted(1);
  std::vector<std::jthread> threads;  // joined at the end, when the latch lets them go
  try {
    for (int i = 1; i < wanted; ++i) threads.emplace_back([&counted] { counted.wait(); });
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  counted.count_down();
  const int found = static_cast<int>(threads.size()) + 1;
  threads.clear();
  wait_until_gone(before);
  return found;
}

}  // namespace superstep
