// Plans as --explain prints them.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "superstep/lab/profile/explain.h"
#include "tests/contains.h"

namespace superstep::lab {
namespace {

// A thousand million operations and bytes a second.
MachineFloor made_up_machine() {
  return {.threads = 1, .f32_flops = 1e9, .levels = {{"L1", 10000, 1e9}, {"memory", ~std::size_t{0}, 1e7}}};
}

target::PlanStep step(const char* node, target::PlanPart part, double flops, double bytes, double seconds,
                      std::int64_t executions) {
  return {.node = node,
          .op = "Conv",
          .kernel = "kernel of " + std::string(node),
          .refusals = {"winograd: the window is not 3 x 3"},
          .flops = flops,
          .bytes = bytes,
          .seconds = seconds,
          .part = part,
          .executions = executions};
}

// Packing once, two steps for each of four micro-batches, one update.
target::PlanSummary made_up_plan() {
  target::PlanSummary plan{.batch = 8, .micro_batch = 2, .threads = 1, .flops = 4 * 5000, .plan_bytes = 4000};
  plan.prepare = {step("pack", target::PlanPart::prepare, 0, 500, 1e-6, 1)};
  plan.steps = {step("conv1", target::PlanPart::body, 4000, 100, 8e-6, 4),
                step("conv2", target::PlanPart::body, 1000, 2000, 4e-6, 4)};
  plan.update = {step("adam", target::PlanPart::update, 100, 1000, 3e-6, 1)};
  return plan;
}

// The line of a step's table that ends with its kernel.
std::string line_of(const std::string& text, const std::string& node) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.ends_with("kernel of " + node)) return line;
  return "";
}

TEST(Explain, SaysOfEveryStepWhatItTakesAndWhatItCould) {
  const MachineFloor machine = made_up_machine();
  const std::string text = explain(made_up_plan(), &machine);
  for (const char* node : {"pack", "conv1", "conv2", "adam"}) EXPECT_NE(line_of(text, node), "") << node;
  // 4 us of arithmetic in 8; 2 us of bytes in 4; in all 52 us a run.
  EXPECT_TRUE(contains(line_of(text, "conv1"), "50 %  compute"));
  EXPECT_TRUE(contains(line_of(text, "conv1"), "62 %  Conv"));
  EXPECT_TRUE(contains(line_of(text, "conv2"), "50 %  memory"));
  EXPECT_TRUE(contains(text, "once, when parameters have changed"));
  EXPECT_TRUE(contains(text, "for each of 4 micro-batches"));
  EXPECT_TRUE(contains(text, "once per run, after the micro-batches"));
}

TEST(Explain, AddsUpAndMarksTheLongestSteps) {
  const MachineFloor machine = made_up_machine();
  const std::string text = explain(made_up_plan(), &machine);
  EXPECT_TRUE(contains(text, "in all: 4 steps, 20.1 kFLOP and 9.90 kB per run, 52 us of all"));
  EXPECT_TRUE(contains(text, "49 % of the floor"));  // 0.5 + 16 + 8 + 1 us of 52
  EXPECT_TRUE(line_of(text, "conv1").starts_with("*"));
  for (const char* other : {"pack", "conv2", "adam"})
    EXPECT_FALSE(line_of(text, other).starts_with("*")) << other;
}

TEST(Explain, WithoutTimesSaysNothingOfAFloor) {
  target::PlanSummary plan = made_up_plan();
  for (auto* part : {&plan.prepare, &plan.steps, &plan.update})
    for (target::PlanStep& untimed : *part) untimed.seconds = 0;
  EXPECT_FALSE(is_timed(plan));
  EXPECT_TRUE(is_timed(made_up_plan()));
  const std::string text = explain(plan, nullptr);
  EXPECT_FALSE(contains(text, " compute"));
  EXPECT_FALSE(contains(text, "of the floor"));
  EXPECT_TRUE(contains(line_of(text, "conv1"), "0.004"));
}

TEST(Explain, SaysWhatNoKernelTakes) {
  target::PlanSummary plan = made_up_plan();
  EXPECT_FALSE(contains(explain(plan, nullptr), "without a kernel"));
  for (target::PlanStep& slow : plan.steps) slow.kernel = target::reference_kernel;
  // 48 us of 52.
  EXPECT_TRUE(
      contains(explain(plan, nullptr),
               "without a kernel, one element at a time: 2 of 4 steps, 92 % of the time (steps 2, 3)"));
}

TEST(Explain, SaysARefusalOnce) {
  std::vector<StepProfile> steps(7);
  for (const std::size_t i : {0u, 1u, 2u, 4u, 6u}) steps[i].step.refusals = {"a: b"};
  steps[5].step.refusals = {"c: d", "c: d"};
  const auto refused = refused_steps(steps);
  ASSERT_EQ(refused.size(), 2u);
  EXPECT_EQ(refused[0].refusal, "a: b");
  EXPECT_EQ(refused[0].steps, "1 to 3, 5, 7");
  EXPECT_EQ(refused[1].steps, "6");
}

}  // namespace
}  // namespace superstep::lab
