// The pool of threads, and threads beside it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/thread_pool.h"
#include "superstep/base/threads/own_threads.h"

namespace superstep {
namespace {

TEST(ThreadPool, DoesEveryItemOnceManyTimes) {
  ThreadPool pool(4);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    std::vector<std::atomic<int>> counts(17);
    pool.parallel_for(17, [&](std::int64_t item, int) { counts[static_cast<std::size_t>(item)]++; });
    for (auto& count : counts) ASSERT_EQ(count, 1);
  }
}

// Pools of a size share their threads: each call still does all of its items, with workers that it may count.
TEST(ThreadPool, PoolsUsedAtTheSameTimeDoAllTheirItems) {
  std::atomic<int> done{0}, wrong{0};
  const auto use = [&] {
    ThreadPool pool(3);
    for (int repeat = 0; repeat < 300; ++repeat)
      pool.parallel_for(20, [&](std::int64_t, int worker) {
        ++done;
        if (worker < 0 || worker >= pool.threads()) ++wrong;
      });
  };
  std::thread beside(use);
  use();
  beside.join();
  EXPECT_EQ(done, 2 * 300 * 20);
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, RethrowsAndGoesOn) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.parallel_for(100,
                                 [](std::int64_t item, int) {
                                   if (item == 7) throw std::runtime_error("7");
                                 }),
               std::runtime_error);
  std::atomic<int> done{0};
  pool.parallel_for(100, [&](std::int64_t, int) { ++done; });
  EXPECT_EQ(done, 100);
}

TEST(ThreadPool, CallsNoMoreThreadsThanItIsTold) {
  ThreadPool pool(24);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const int most = 1 + repeat % 24;
    std::vector<std::atomic<int>> counts(40);
    std::atomic<int> beyond{0};
    pool.parallel_for(
        40,
        [&](std::int64_t item, int worker) {
          counts[static_cast<std::size_t>(item)]++;
          if (worker >= most) ++beyond;
        },
        most);
    for (auto& count : counts) ASSERT_EQ(count, 1);
    ASSERT_EQ(beyond, 0);
  }
}

// Few items for many threads, with pauses in which they fall asleep.
TEST(ThreadPool, WakesWhomItNeeds) {
  ThreadPool pool(64);
  for (int repeat = 0; repeat < 30; ++repeat) {
    if (repeat % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::int64_t items = 1 + 7 * repeat;
    std::atomic<std::int64_t> sum{0};
    pool.parallel_for(items, [&](std::int64_t item, int) { sum += item; });
    ASSERT_EQ(sum, items * (items - 1) / 2);
  }
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // which reserve terabytes
// In a process of its own, whose memory has no room for so many stacks.
int exit_code_without_room(void (*work)()) {
  rlimit limit{.rlim_cur = rlim_t{1} << 30, .rlim_max = rlim_t{1} << 30};
  setrlimit(RLIMIT_AS, &limit);
  try {
    work();
  } catch (const Error& error) {
    return error.code() == ErrorCode::io && error.hint().find("--threads") != std::string::npos ? 7 : 8;
  }
  return 9;
}

TEST(ThreadPool, GoesOnWithTheThreadsThatTheSystemStarts) {
  const auto work = [] {
    ThreadPool pool(4000);
    std::atomic<std::int64_t> sum{0};
    pool.parallel_for(5000, [&](std::int64_t item, int) { sum += item; });
    if (sum != 5000 * 4999 / 2) std::_Exit(1);
  };
  EXPECT_EXIT(std::_Exit(exit_code_without_room(work)), ::testing::ExitedWithCode(9),
              "of 4000 threads could be started");
}

TEST(OwnThreads, SayThatTheSystemStartsNoMore) {
  const auto work = [] {
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    try {
      for (int i = 0; i < 4000; ++i) threads.push_back(start_thread([&over] { over.wait(false); }));
    } catch (...) {
      over = true;
      over.notify_all();
      for (std::thread& thread : threads) thread.join();
      throw;
    }
  };
  EXPECT_EXIT(std::_Exit(exit_code_without_room(work)), ::testing::ExitedWithCode(7), "");
}
#endif

}  // namespace
}  // namespace superstep
