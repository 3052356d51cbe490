// Sleeping on a word for a time, and threads that change processors.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/base/threads/sleeping.h"
#include "superstep/base/threads/thread_place.h"

namespace superstep {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST(Sleeping, EndsWithTheTimeOrTheWordOrAWake) {
  std::atomic<std::uint32_t> word{7};
  auto begun = Clock::now();
  sleep_while(word, 7, milliseconds(20));
  EXPECT_GE(Clock::now() - begun, milliseconds(20));
  sleep_while(word, 8);  // at once: it is not
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(20));
    word.store(0);
    wake_one(word);
  });
  while (word.load() == 7) sleep_while(word, 7);
  waker.join();
}

std::vector<int> processors_of(int thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(thread, sizeof set, &set), 0);
  std::vector<int> found;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) found.push_back(i);
  return found;
}

void stay_on(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

// Computes on the first of two processors until it is let go of, and says where it is.
struct Spinning {
  ThreadPlace place;
  std::atomic<int> thread{0}, processor{-1};
  std::atomic<bool> ends{false};
  std::vector<int> may;
  std::thread self;

  Spinning(int first, std::vector<int> allowed)
      : may(std::move(allowed)), self([this, first] {
          stay_on({first});
          stay_on(may);
          place.enter();
          thread = gettid();
          while (!ends) processor = sched_getcpu();
        }) {
    while (processor < 0) std::this_thread::yield();
  }
  ~Spinning() {
    ends = true;
    self.join();
  }
  bool is_seen_on(int wanted, std::chrono::milliseconds within) const {
    for (const auto end = Clock::now() + within; Clock::now() < end;)
      if (processor == wanted) return true;
    return false;
  }
};

TEST(ThreadPlace, KnowsWhetherItsThreadRuns) {
  const std::vector<int> all = processors_of(0);
  {
    Spinning busy(all.front(), all);
    const auto had = busy.place.processor_time();
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_GT(busy.place.processor_time(), had);
  }
  ThreadPlace own;
  own.enter();
  const auto had = own.processor_time();
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_LT(own.processor_time() - had, milliseconds(25));
}

// Whether a thread on the first processor is then seen on the second, where the caller was. A third thread
// keeps that one from falling idle: the system would bring the other one there by itself.
bool is_brought_over(const std::vector<int>& all) {
  const Spinning third(all[1], {all[1]});
  Spinning other(all[0], {all[0], all[1]});
  stay_on({all[1]});
  stay_on(all);
  other.place.exchange_with_caller();
  EXPECT_EQ(processors_of(0), all);
  EXPECT_EQ(processors_of(other.thread), other.may);
  return other.place.exchanges() == 1 && other.is_seen_on(all[1], milliseconds(100));
}

// The system moves threads as it likes, too: of many rounds most count.
TEST(ThreadPlace, IsExchangedAndBothMayRunWhereTheyCould) {
  const std::vector<int> all = processors_of(0);
  if (all.size() < 2) GTEST_SKIP() << "there is one processor";
  int brought = 0;
  for (int round = 0; round < 11; ++round) brought += is_brought_over(all);
  EXPECT_GE(brought, 6);
}

TEST(ThreadPlace, StaysWhereItMayNotBeExchanged) {
  const std::vector<int> all = processors_of(0);
  if (all.size() < 2) GTEST_SKIP() << "there is one processor";
  Spinning other(all[0], {all[0]});
  stay_on({all[1]});
  other.place.exchange_with_caller();
  EXPECT_EQ(other.place.exchanges(), 0u);
  EXPECT_EQ(processors_of(0), std::vector<int>{all[1]});
  stay_on(all);
  ThreadPlace nobody;
  nobody.exchange_with_caller();
  EXPECT_EQ(nobody.exchanges(), 0u);
}

void compute_for(std::chrono::microseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) continue;
}

// A thread without a processor, for it sleeps here, is exchanged with the one that waits for it, caller or
// worker.
TEST(ThreadPool, WaitsForAThreadWithoutAProcessor) {
  const std::vector<int> all = processors_of(0);
  for (const int threads : {2, 3, 64}) {
    ThreadPool pool(threads);
    for (const int sleeper : {0, 1}) {
      std::atomic<int> done{0}, slept{0};
      pool.parallel_for(200, [&](std::int64_t, int worker) {
        if (worker == sleeper && ++slept <= 3) std::this_thread::sleep_for(milliseconds(3));
        for (const auto end = Clock::now() + std::chrono::seconds(5); slept == 0 && Clock::now() < end;)
          std::this_thread::yield();
        compute_for(std::chrono::microseconds(50));
        ++done;
      });
      EXPECT_EQ(done, 200);
      EXPECT_GT(slept, 0);
    }
  }
  EXPECT_EQ(processors_of(0), all);
}

}  // namespace
}  // namespace superstep
