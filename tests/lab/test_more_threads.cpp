// Runs on more threads than there are: schedules whose length is known, and the whole way from a model to a
// table.
#include <gtest/gtest.h>

#include "superstep/base/error.h"
#include "superstep/lab/profile/model.h"
#include "superstep/lab/profile/more_threads.h"
#include "tests/contains.h"

namespace superstep::lab {
namespace {

using target::PlanStep;
using target::PlanSummary;

constexpr double each = 0.125;

ThreadCosts made_up_costs() {
  return {.calling = 1, .each = each, .memory_rate = 100, .last_cache = 1000, .one_rate = 1000};
}

PlanStep step(double seconds, int threads = 1, std::int64_t parts = 1) {
  return {.node = "n", .op = "Conv", .kernel = "k", .seconds = seconds, .threads = threads, .parts = parts};
}

// Of so many micro-batches of one sample.
PlanSummary plan(std::int64_t micro_batches, std::size_t groups, int threads, std::vector<PlanStep> steps) {
  return {.batch = micro_batches,
          .micro_batch = 1,
          .threads = threads,
          .groups = groups,
          .steps = std::move(steps)};
}

SimulatedTime time_of(const PlanSummary& planned) { return simulate(planned, made_up_costs()); }

TEST(MoreThreads, OneThreadTakesTheSumOfItsSteps) {
  PlanSummary planned = plan(6, 3, 1, {step(2), step(3)});
  planned.update = {step(4)};
  const SimulatedTime time = time_of(planned);
  EXPECT_DOUBLE_EQ(time.shared, 6 * 5 + 4);
  EXPECT_DOUBLE_EQ(time.seconds(), time.shared);
}

TEST(MoreThreads, TakeAGroupAtATime) {
  // Eight groups of two micro-batches: two groups a thread, then three where there are three threads.
  const SimulatedTime four = time_of(plan(16, 8, 4, {step(10)}));
  EXPECT_DOUBLE_EQ(four.shared, 40);
  EXPECT_DOUBLE_EQ(four.uneven, 0);
  EXPECT_DOUBLE_EQ(four.calling, 1 + 2 * each);
  const SimulatedTime three = time_of(plan(16, 8, 3, {step(10)}));
  EXPECT_DOUBLE_EQ(three.seconds() - three.calling, 60);
  EXPECT_DOUBLE_EQ(three.uneven, 60 - 160.0 / 3);
}

TEST(MoreThreads, ShareASingleMicroBatchByParts) {
  // Ten parts over four threads: three turns. A step that stays with one keeps the others waiting.
  const SimulatedTime time = time_of(plan(1, 1, 4, {step(10, 4, 10), step(8)}));
  EXPECT_DOUBLE_EQ(time.shared, 18.0 / 4);
  EXPECT_DOUBLE_EQ(time.uneven, 3 - 10.0 / 4);
  EXPECT_DOUBLE_EQ(time.alone, 8 - 8.0 / 4);
  EXPECT_DOUBLE_EQ(time.calling, 1 + 2 * each);
}

TEST(MoreThreads, ShareEvenlyWhereAKernelDividesItself) {
  PlanStep own = step(10, 4, 8);
  own.evenly = true;
  EXPECT_DOUBLE_EQ(time_of(plan(1, 1, 4, {own})).uneven, 0);
}

TEST(MoreThreads, WaitAtJoins) {
  // Two groups of two micro-batches on four threads: two threads have nothing to do until the parts of the
  // third step.
  PlanStep join = step(5);
  join.joins = true;
  PlanSummary planned = plan(4, 2, 4, {step(10), join, step(6, 4, 3)});
  planned.in_step = true;
  const SimulatedTime time = time_of(planned);
  EXPECT_DOUBLE_EQ(time.shared, (40 + 5 + 24) / 4.0);
  EXPECT_DOUBLE_EQ(time.alone, 5 - 5 / 4.0);
  EXPECT_DOUBLE_EQ(time.uneven, 20 - 10);  // twelve parts of two seconds divide evenly
  EXPECT_DOUBLE_EQ(time.calling, 1 + (1 + 2 * each));
}

TEST(MoreThreads, GoRoundByRoundWithoutJoins) {
  // Five micro-batches in two groups: rounds of two, two and one, each step over all threads.
  PlanSummary planned = plan(5, 2, 8, {step(8, 8, 4)});
  planned.in_step = true;
  const SimulatedTime time = time_of(planned);
  EXPECT_DOUBLE_EQ(time.seconds() - time.calling, 2 + 2 + 2);
  EXPECT_DOUBLE_EQ(time.calling, 2 * (1 + 6 * each) + (1 + 2 * each));
}

TEST(MoreThreads, AreNoFasterThanTheMemory) {
  PlanSummary planned = plan(4, 4, 4, {step(10)});
  planned.update = {step(10, 4, 4)};
  planned.update[0].bytes = 2000;
  planned.plan_bytes = 900;  // stays in the last cache
  EXPECT_DOUBLE_EQ(time_of(planned).memory, 0);
  planned.plan_bytes = 1100;
  EXPECT_DOUBLE_EQ(time_of(planned).memory, 20 - 2.5);
  planned.update[0].bytes = 20000;  // of which one thread cannot have moved more than half in its time
  EXPECT_DOUBLE_EQ(time_of(planned).memory, 100 - 2.5);
  ThreadCosts faster = made_up_costs();
  faster.memory_rate = 10000;
  EXPECT_DOUBLE_EQ(simulate(planned, faster).memory, 0);
}

TEST(MoreThreads, HaveABetterAndAWorseMachine) {
  const MeasuredCosts measured{
      .calling = 1, .each_low = 2, .each_high = 3, .memory_rate = 100, .last_cache = 10, .processors = 4};
  EXPECT_DOUBLE_EQ(measured.better(16).memory_rate, 400);
  EXPECT_DOUBLE_EQ(measured.better(2).memory_rate, 100);
  EXPECT_DOUBLE_EQ(measured.better(16).each, 2);
  EXPECT_DOUBLE_EQ(measured.worse().each, 3);
  EXPECT_DOUBLE_EQ(measured.worse().last_cache, 10);
}

std::vector<SimulatedRun> simulated(const char* model, const char* mode, std::int64_t batch,
                                    std::vector<int> threads) {
  ProfileRequest request{.model = model, .mode = mode, .batch = batch};
  const target::Target& cpu = target::find_target("cpu");
  const ProfiledModel opened = open_profiled_model(request, &cpu);
  MeasuredCosts costs{
      .calling = 1e-6, .each_low = 4e-8, .each_high = 25e-8, .memory_rate = 2e10, .last_cache = 3e7};
  return simulate_threads(cpu, opened, {.batch = request.batch, .runs = 3}, std::move(threads), costs);
}

// Of one thread it is what was measured; groups, steps in step, single samples, and batch statistics.
TEST(MoreThreads, StartFromWhatOneTakes) {
  for (const auto& [model, mode, batch] : {std::tuple{"mlp", "train", 64},
                                           {"braggnn", "train", 64},
                                           {"braggnn", "infer", 1},
                                           {"yieldgnn", "train", 2}}) {
    const std::vector<SimulatedRun> runs = simulated(model, mode, batch, {64, 3});
    ASSERT_EQ(runs.size(), 3u) << model;
    EXPECT_EQ(runs[0].threads, 1);
    EXPECT_NEAR(runs[0].low.seconds(), runs[0].measured, 1e-6 * runs[0].measured) << model;
    for (const SimulatedRun& run : runs) {
      EXPECT_LE(run.low.seconds(), run.high.seconds());
      for (const double part :
           {run.low.shared, run.low.alone, run.low.uneven, run.low.calling, run.low.memory})
        EXPECT_GE(part, -1e-12) << model << ' ' << run.threads;
    }
    EXPECT_EQ(runs[2].measured, 0) << "there are no 64 processors";
    EXPECT_TRUE(contains(simulated_text(runs, batch, {}), "times as fast"));
  }
}

}  // namespace
}  // namespace superstep::lab
