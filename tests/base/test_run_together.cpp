#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <optional>

#include "superstep/base/threads/run_together.h"
#include "superstep/base/threads/startable_threads.h"

namespace superstep {
namespace {

TEST(RunTogether, AllMeetAtABarrierOfTheirNumber) {
  std::optional<std::barrier<>> barrier;
  std::atomic<int> met{0};
  int threads = 0;
  run_together(
      7, [&](int count) { barrier.emplace(threads = count); },
      [&](int index) {
        barrier->arrive_and_wait();
        met += index + 1;
      });
  EXPECT_EQ(threads, 7);
  EXPECT_EQ(met, 28);
}

TEST(StartableThreads, CountsTheCallerAndLeavesNone) {
  EXPECT_EQ(startable_threads(1), 1);
  EXPECT_EQ(startable_threads(5), 5);
  EXPECT_EQ(startable_threads(0), 1);
}

}  // namespace
}  // namespace superstep
