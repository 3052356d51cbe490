#include "superstep/base/system/startable_threads.h"

#include <latch>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace superstep {

int startable_threads(int wanted) {
  std::latch counted(1);
  std::vector<std::jthread> threads;  // joined at the end, when the latch lets them go
  try {
    for (int i = 1; i < wanted; ++i) threads.emplace_back([&counted] { counted.wait(); });
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  counted.count_down();
  return static_cast<int>(threads.size()) + 1;
}

}  // namespace superstep
