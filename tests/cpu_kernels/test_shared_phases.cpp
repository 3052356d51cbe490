#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "superstep/target/cpu/kernels/core/shared_phases.h"

namespace superstep::kernels {
namespace {

// Counts how often each item of each phase ran, and items that began before all of the phase before had
// ended.
class Count {
 public:
  Count(std::int64_t phases, std::int64_t items)
      : phases_(phases), items_(items), runs_(static_cast<std::size_t>(phases * items)), ended_(phases) {}

  void run(std::int64_t phase, std::int64_t item) {
    if (phase > 0 && ended_[static_cast<std::size_t>(phase - 1)] != items_) ++too_early_;
    ++runs_[static_cast<std::size_t>(phase * items_ + item)];
    ++ended_[static_cast<std::size_t>(phase)];
  }
  void check() const {
    EXPECT_EQ(0, too_early_);
    for (const auto& runs : runs_) EXPECT_EQ(1, runs);
  }
  void join(void* memory, int member) {
    SharedPhases::at(memory).join(member, phases_,
                                  [&](std::int64_t phase, std::int64_t item) { run(phase, item); });
  }

 private:
  std::int64_t phases_, items_;
  std::vector<std::atomic<int>> runs_;
  std::vector<std::atomic<std::int64_t>> ended_;
  std::atomic<int> too_early_ = 0;
};

struct alignas(64) Memory {
  std::byte bytes[SharedPhases::bytes];
};

TEST(SharedPhases, every_item_runs_once_and_after_the_phase_before) {
  for (const int members : {1, 2, 3, 5})
    for (const std::int64_t items : {1, 2, 7, 32}) {
      Memory memory;
      Count count(200, items);
      SharedPhases::begin(&memory, items, members);
      std::vector<std::jthread> threads;
      for (int member = 1; member < members; ++member)
        threads.emplace_back([&, member] { count.join(&memory, member); });
      count.join(&memory, 0);
      threads.clear();
      count.check();
    }
}

TEST(SharedPhases, the_first_member_does_all_of_it_where_the_others_come_later) {
  for (const bool backwards : {false, true}) {
    Memory memory;
    Count count(50, 7);
    SharedPhases::begin(&memory, 7, 3);
    count.join(&memory, backwards ? 2 : 0);
    count.check();
    for (const int late : {1, backwards ? 0 : 2}) count.join(&memory, late);
    count.check();
  }
}

TEST(SharedPhases, a_member_that_is_held_up_holds_the_others_up_for_its_share_alone) {
  Memory memory;
  constexpr std::int64_t phases = 20, items = 8, held = 3;
  Count count(phases, items);
  std::atomic<std::int64_t> begun = 0;
  std::atomic<bool> both = false;
  SharedPhases::begin(&memory, items, 2);
  std::jthread slow([&] {
    SharedPhases::at(&memory).join(1, phases, [&](std::int64_t phase, std::int64_t item) {
      both = true;
      // The first item of its share: the other share is done and nothing after it.
      const std::int64_t others = held * items + items / 2;
      while (phase == held && begun < others) std::this_thread::yield();
      if (phase == held) {
        EXPECT_LE(begun, others + items / 2);
      }
      ++begun;
      count.run(phase, item);
    });
  });
  SharedPhases::at(&memory).join(0, phases, [&](std::int64_t phase, std::int64_t item) {
    while (!both) std::this_thread::yield();
    ++begun;
    count.run(phase, item);
  });
  slow.join();
  count.check();
}

// Where the others are there, an item is done by the member whose share it is: its data are in its cache.
TEST(SharedPhases, shares_stay_with_their_members) {
  Memory memory;
  constexpr std::int64_t phases = 400, items = 8;
  std::atomic<int> own = 0;
  SharedPhases::begin(&memory, items, 2);
  const auto body = [&](int member) {
    return [&own, member](std::int64_t, std::int64_t item) {
      if ((item >= items / 2) == (member == 1)) ++own;
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(1);
      while (std::chrono::steady_clock::now() < end) {
      }
    };
  };
  std::jthread other([&] { SharedPhases::at(&memory).join(1, phases, body(1)); });
  SharedPhases::at(&memory).join(0, phases, body(0));
  other.join();
  EXPECT_GE(own, phases * items / 2);  // a core of its own for each: nearly all; one core for both: half
}

}  // namespace
}  // namespace superstep::kernels
