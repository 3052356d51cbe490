// Predictions for a processor: the probes that kernels are timed by, and the time of a plan from the times of
// its steps.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "superstep/base/error.h"
#include "superstep/lab/advise/processor.h"
#include "superstep/lab/machine/host_machine.h"
#include "superstep/lab/machine/peak_kernels.h"
#include "superstep/lab/processor/kernel_measurement.h"
#include "superstep/lab/processor/prediction.h"
#include "superstep/lab/processor/probes.h"
#include "superstep/machine/rates/facts.h"
#include "superstep/run/model.h"
#include "tests/contains.h"

namespace superstep::lab {
namespace {

using target::PlanPart;
using target::PlanStep;
using target::PlanSummary;

PlanStep step(const char* kernel, PlanPart part, int threads = 1) {
  return {.node = "n",
          .op = "Op",
          .kernel = kernel,
          .flops = 1e6,
          .bytes = 1e3,
          .part = part,
          .threads = threads};
}

PlanSummary a_plan(std::int64_t micro_batches, int threads, std::size_t groups) {
  PlanSummary plan{.batch = 4 * micro_batches,
                   .micro_batch = 4,
                   .threads = threads,
                   .activation_bytes = 1000,
                   .groups = groups};
  plan.prepare = {step("p", PlanPart::prepare)};
  plan.steps = {step("a", PlanPart::body), step("b", PlanPart::body)};
  plan.update = {step("u", PlanPart::update)};
  return plan;
}

// a takes 1 s, b 10, p 100, u 1000.
double seconds_of(const machine::KernelTime& asked) {
  switch (asked.kernel.back()) {
    case 'a': return 1;
    case 'b': return 10;
    case 'p': return 100;
    default: return 1000;
  }
}

TEST(PlanTime, OneThreadDoesOneThingAfterTheOther) {
  const PlanTime time = plan_time(a_plan(3, 1, 3), true, seconds_of);
  EXPECT_EQ(time.body, 33);
  EXPECT_EQ(time.prepare, 100);
  EXPECT_EQ(time.update, 1000);
  EXPECT_EQ(time.executions, 8);
}

TEST(PlanTime, ServedWeightsArePreparedOnce) {
  EXPECT_EQ(plan_time(a_plan(3, 1, 3), false, seconds_of).prepare, 0);
}

// Four micro-batches on two threads take the time of two; three in three groups, that of two as well.
TEST(PlanTime, TheThreadWithTheMostMicroBatchesCounts) {
  EXPECT_EQ(plan_time(a_plan(4, 2, 4), false, seconds_of).body, 22);
  EXPECT_EQ(plan_time(a_plan(3, 2, 3), false, seconds_of).body, 22);
  EXPECT_EQ(plan_time(a_plan(8, 2, 2), false, seconds_of).body, 44);
}

TEST(PlanTime, WhatThreadsShareIsDoneForAllMicroBatches) {
  PlanSummary plan = a_plan(2, 2, 2);
  plan.steps[0].threads = 2;
  EXPECT_EQ(plan_time(plan, false, seconds_of).body, 2 * 1 + 10);
  EXPECT_EQ(asked_of(plan.steps[0], plan).sharing, 2);
  EXPECT_EQ(asked_of(plan.steps[1], plan).sharing, 1);
  EXPECT_EQ(asked_of(plan.steps[1], plan).busy, 2);
}

TEST(PlanTime, AKernelOfAnyOperatorIsToldByIt) {
  PlanSummary plan = a_plan(1, 1, 1);
  plan.steps[0].kernel = "reference evaluation";
  plan.steps[0].op = "TopK";
  EXPECT_EQ(asked_of(plan.steps[0], plan).kernel, "f32 reference evaluation, TopK");
  EXPECT_EQ(asked_of(plan.steps[1], plan).kernel, "f32 b");
}

TEST(Probes, AllCanBeCompiledAndAreOfManyKinds) {
  std::set<std::string> names, precisions;
  int trained = 0;
  for (std::uint64_t number = 0; number < probe_count; ++number) {
    const Probe what = probe(number);
    names.insert(what.name);
    precisions.insert(what.precision);
    trained += what.trains;
    EXPECT_FALSE(what.graph(2).nodes().empty()) << what.name;
  }
  EXPECT_EQ(names.size(), probe_count);
  EXPECT_EQ(precisions.size(), 3u);
  EXPECT_EQ(trained, 60);
}

machine::Machine measure_machine(std::uint64_t probes) {
  HostMachine host{.id = "box", .name = "a box", .host = "here", .date = "2026-01-31"};
  for (const auto& spec : machine::constants_of(machine::Style::kernel_by_kernel)) {
    const double value = spec.unit == "" ? 1 : spec.unit == "s" ? 1e-7 : spec.unit == "B" ? 1e10 : 1e11;
    host.constants.push_back({std::string(spec.name), std::string(spec.unit), value, value, value, ""});
  }
  host.kernels = measure_kernels(
      {.threads = 1, .probes = probes, .seconds_a_probe = 0.01, .peaks = {.flops = 1e11, .bytes = 1e10}});
  return machine::parse_machine(to_toml(host), "box.toml");
}

// Measured once for all tests.
machine::Machine measured_machine() {
  static const machine::Machine box = measure_machine(16);
  return box;
}

// To laws of few constants it is no GPU, though its file has the constants of that style.
TEST(ProcessorPrediction, IsAProcessorToLawsAsWell) {
  const machine::MachineFacts facts = machine::facts_of(measured_machine());
  EXPECT_EQ(facts.style, "processor");
  EXPECT_GT(facts.peak("fp32"), 0);
  EXPECT_EQ(machine::facts_of(machine::find_machine("a100-40gb")).style, "kernel-by-kernel");
}

// A processor that was measured has its place among the machines that are predicted.
TEST(Advice, RanksAMeasuredProcessor) {
  SearchSettings search{.trains = true, .goal = Goal::throughput, .most_samples = 32};
  const std::vector<Option> options =
      options_on_processor(measured_machine(), {.workload = "mlp"}, 1, search);
  ASSERT_EQ(options.size(), 2U);
  for (const Option& option : options) {
    EXPECT_EQ(option.prediction.samples, 32);
    EXPECT_TRUE(option.figure.known());
    EXPECT_LE(option.figure.low, option.figure.value);
    EXPECT_GE(option.figure.high, option.figure.value);
  }
  EXPECT_TRUE(best_of(options, Goal::throughput));
  search.precisions = {"16.16"};
  EXPECT_TRUE(options_on_processor(measured_machine(), {.workload = "mlp"}, 1, search).empty());
}

PlanSummary plan_of(const char* workload, std::int64_t batch, int threads = 1) {
  const target::Target& cpu = target::find_target("cpu");
  const run::Model model({.workload = workload});
  return cpu.compile(model.training_step(&cpu), {.batch = batch, .threads = threads})->summary();
}

TEST(ProcessorPrediction, IsTheSumOfItsStepsAndTheirOverheads) {
  const machine::Machine box = measured_machine();
  ASSERT_TRUE(box.processor());
  EXPECT_GT(box.processor()->times.size(), 100u);
  const PlanSummary plan = plan_of("mlp", 64);
  const ProcessorPrediction prediction = predict_plan(box, plan, true);
  double sum = 0, executions = 0;
  for (const ProcessorStep& of : prediction.steps) {
    const double times =
        of.step.part == PlanPart::body ? static_cast<double>(plan.batch / plan.micro_batch) : 1;
    sum += times * of.seconds;
    executions += times;
  }
  EXPECT_NEAR(prediction.seconds, sum + executions * box.processor()->step_overhead, 1e-6 * sum);
  EXPECT_TRUE(prediction.fits());
  EXPECT_GE(prediction.roofline_seconds, prediction.peak_seconds);
}

// Slower kernels make a slower prediction, in proportion: times are used, not only peaks.
TEST(ProcessorPrediction, FollowsTheTimesInTheFile) {
  machine::Machine box = measured_machine();
  const PlanSummary plan = plan_of("mlp", 64);
  const double before = predict_plan(box, plan, true).parts.total();
  machine::ProcessorTimes times = *box.processor();
  for (machine::KernelTime& time : times.times) time.seconds *= 3;
  box.set_processor(times);
  EXPECT_NEAR(predict_plan(box, plan, true).parts.total(), 3 * before, 1e-6 * before);
}

TEST(ProcessorPrediction, SaysWhatWasNotMeasured) {
  machine::Machine box = measured_machine();
  EXPECT_TRUE(predict_plan(box, plan_of("mlp", 64), true).beyond.empty());
  EXPECT_FALSE(predict_plan(box, plan_of("mlp", 64, 2), true).beyond.empty());  // one thread was measured
  machine::ProcessorTimes times = *box.processor();
  for (machine::KernelTime& time : times.times) time.kernel = "f32 other, " + time.kernel;
  box.set_processor(times);
  const ProcessorPrediction unknown = predict_plan(box, plan_of("mlp", 64), true);
  EXPECT_EQ(unknown.unknown_share, 1);
  EXPECT_TRUE(contains(unknown.beyond.at(0), "not measured"));
}

TEST(ProcessorPrediction, OfOtherInstructionsOrNoTimesIsRefused) {
  machine::Machine box = measured_machine();
  machine::ProcessorTimes times = *box.processor();
  times.instructions = "of another make";
  box.set_processor(times);
  EXPECT_THROW(predict_plan(box, plan_of("mlp", 64), true), Error);
  EXPECT_THROW(predict_plan(machine::find_machine("a100-40gb"), plan_of("mlp", 64), true), Error);
}

TEST(ProcessorPrediction, EveryStepIsMeasuredWhereItRuns) {
  const target::Target& cpu = target::find_target("cpu");
  const run::Model model({.workload = "mlp"});
  target::CompileOptions options{.batch = 64};
  options.measure_steps = true;
  const auto plan = cpu.compile(model.training_step(&cpu), options);
  ProcessorPrediction prediction = predict_plan(measured_machine(), plan->summary(), true);
  for (const ProcessorStep& of : prediction.steps) EXPECT_EQ(of.measured, 0);
  measure_steps_of(prediction, *plan, true, 0.01);
  for (const ProcessorStep& of : prediction.steps) EXPECT_GT(of.measured, 0) << of.step.kernel;
}

TEST(ProcessorPrediction, APlanIsRunForItsTime) {
  const target::Target& cpu = target::find_target("cpu");
  const run::Model model({.workload = "mlp"});
  const auto plan = cpu.compile(model.training_step(&cpu), {.batch = 64});
  const MeasuredRuns runs = measure_runs(*plan, true, 0.01);
  EXPECT_GE(runs.runs, 3u);
  EXPECT_LE(runs.best, runs.median);
  EXPECT_GT(runs.best, 0);
}

}  // namespace
}  // namespace superstep::lab
