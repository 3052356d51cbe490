// Arenas that are lent to groups of micro-batches: as many as groups in flight, whoever works on them.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "superstep/base/thread_pool.h"
#include "superstep/target/cpu/run/arena_leases.h"
#include "superstep/transform/training/training_step.h"
#include "tests/target/run.h"

namespace superstep::target::cpu {
namespace {

constexpr std::size_t arena_bytes = 256;

TEST(ArenaLeases, NobodyElseHasALeasesMemory) {
  for (const auto& [arenas, threads] : {std::pair<int, int>{1, 1}, {1, 7}, {3, 16}, {8, 9}, {8, 24}}) {
    ArenaLeases leases(static_cast<std::size_t>(arenas), arena_bytes, static_cast<std::size_t>(threads));
    std::atomic<int> lent{0}, shared{0};
    std::vector<std::thread> borrowers;
    for (int thread = 0; thread < threads; ++thread)
      borrowers.emplace_back([&, thread] {
        for (int round = 0; round < 500; ++round) {
          // Never more leases than arenas: as many groups are in flight.
          if (lent.fetch_add(1) < arenas) {
            const ArenaLeases::Lease lease = leases.lend(static_cast<std::size_t>(thread));
            std::memset(lease.memory(), thread + 1, arena_bytes);
            if (round % 8 == 0) std::this_thread::yield();
            for (std::size_t i = 0; i < arena_bytes; ++i)
              if (lease.memory()[i] != static_cast<std::byte>(thread + 1)) shared.fetch_add(1);
          }
          lent.fetch_sub(1);
        }
      });
    for (std::thread& borrower : borrowers) borrower.join();
    EXPECT_EQ(shared.load(), 0) << arenas << " arenas, " << threads << " threads";
  }
}

TEST(ArenaLeases, AThreadGetsTheOneThatItHadLast) {
  ArenaLeases leases(3, arena_bytes, 8);
  std::byte* had = nullptr;
  {
    const ArenaLeases::Lease first = leases.lend(0), second = leases.lend(1), third = leases.lend(0);
    had = third.memory();
    EXPECT_NE(first.memory(), third.memory());
    EXPECT_NE(second.memory(), third.memory());
  }
  for (int round = 0; round < 3; ++round) {
    const ArenaLeases::Lease other = leases.lend(3);
    EXPECT_EQ(leases.lend(0).memory(), had);
  }
}

// What the plan says it takes is what is allocated: arenas for the groups, scratch for the threads.
TEST(ArenaLeases, AreCountedByGroupsAndNotByThreads) {
  const GraphAtBatch model = [](std::int64_t batch) { return test::attention_network(batch); };
  const auto summary = [&](int threads) {
    return find_target("cpu").compile(model, {.batch = 8, .micro_batch = 4, .threads = threads})->summary();
  };
  const PlanSummary one = summary(1), two = summary(2), many = summary(16);
  EXPECT_EQ(one.at_a_time, 1u);
  EXPECT_EQ(two.at_a_time, 2u);
  EXPECT_EQ(many.at_a_time, 2u);
  EXPECT_EQ(two.activation_bytes, 2 * one.activation_bytes);
  EXPECT_LT(many.activation_bytes, 16 * one.activation_bytes);
  for (const PlanSummary& plan : {one, two, many}) {
    EXPECT_EQ(plan.bytes_in_all(), plan.plan_bytes);
    EXPECT_LE(plan.activation_bytes + plan.state_bytes + plan.constant_bytes, plan.plan_bytes);
  }
}

// A batch of few micro-batches on many threads: any thread may take any of them.
TEST(ArenaLeases, FewerGroupsThanThreadsTrainAndServeAsOneThreadDoes) {
  const GraphAtBatch serving = [](std::int64_t batch) { return test::attention_network(batch); };
  const GraphAtBatch training = [](std::int64_t batch) {
    return transform::make_training_step(test::attention_network(batch),
                                         {{transform::LossTerm{.output = "y"}}}, {});
  };
  for (const GraphAtBatch& model : {serving, training})
    for (const auto& [batch, threads] : {std::pair<int, int>{3, 8}, {3, 16}, {8, 9}, {10, 24}}) {
      CompileOptions options{.batch = batch, .micro_batch = 1};
      test::Runner expected("cpu", model, options);
      options.threads = threads;
      test::Runner actual("cpu", model, options);
      for (int run = 0; run < 30; ++run) {
        expected.run();
        actual.run();
        for (std::size_t i = 0; i < actual.outputs.size(); ++i)
          ASSERT_EQ(std::memcmp(actual.outputs[i].bytes(), expected.outputs[i].bytes(),
                                expected.outputs[i].byte_count()),
                    0)
              << "batch " << batch << ", " << threads << " threads, run " << run;
      }
    }
}

}  // namespace
}  // namespace superstep::target::cpu
