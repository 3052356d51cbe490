// A model in f64 on the cpu target: kernels for all that takes time, and the reference's digits.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <tuple>

#include "superstep/base/random.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/target/target.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"

namespace superstep::target {
namespace {

const std::vector<std::string> force_field = {"types=Cu,Ni", "atoms=5,4",   "sel=6,7",      "embedding=4,8",
                                              "axis=3",      "fitting=8,8", "precision=f64"};

graph::Graph build(std::int64_t batch) {
  return workload::build_model(workload::find_workload("deepmd"), batch, force_field);
}

target::GraphAtBatch training(transform::OptimizerKind kind) {
  return [kind](std::int64_t batch) {
    return transform::make_training_step(build(batch), workload::find_workload("deepmd").training.loss,
                                         transform::usual_optimizer(kind));
  };
}

std::vector<Tensor> inputs_of(const Executable& executable) {
  std::vector<Tensor> inputs;
  for (const auto& port : executable.inputs()) {
    Tensor& input = inputs.emplace_back(port.type.element, port.type.shape);
    RandomStream random(7, inputs.size());
    for (std::int64_t i = 0; i < input.element_count(); ++i)
      input.set(i,
                is_floating(input.type()) ? random.uniform(0, 3) : static_cast<double>(random.below(9)) - 1);
  }
  return inputs;
}

// What runs an operator by the reference evaluation.
std::set<std::string> without_kernel(const PlanSummary& plan) {
  std::set<std::string> found;
  for (const auto* steps : {&plan.prepare, &plan.steps, &plan.update})
    for (const PlanStep& step : *steps)
      if (step.kernel == "reference evaluation") found.insert(step.op);
  return found;
}

void expect_equal(const Tensor& found, const Tensor& expected, const std::string& name) {
  double largest = 0, apart = 0;
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    largest = std::max(largest, std::abs(expected.at(i)));
    apart = std::max(apart, std::abs(found.at(i) - expected.at(i)));
  }
  EXPECT_GT(largest, 0) << name;
  EXPECT_LE(apart, 1e-11 * largest) << name;
}

TEST(PlansOfF64, ServeWithTheReferencesDigits) {
  for (const int threads : {1, 3}) {
    const auto executable = find_target("cpu").compile(build, {.batch = 3, .threads = threads});
    EXPECT_EQ(without_kernel(executable->summary()), std::set<std::string>{});
    const std::vector<Tensor> inputs = inputs_of(*executable);
    std::vector<Tensor> outputs;
    for (const auto& port : executable->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
    executable->run(inputs, outputs);
    const std::vector<Tensor> expected = op::evaluate(build(3), inputs).outputs;
    for (std::size_t k = 0; k < outputs.size(); ++k)
      expect_equal(outputs[k], expected[k], executable->outputs()[k].name);
  }
}

// The micro-batch of four samples, and the rule.
class TrainedF64 : public ::testing::TestWithParam<std::tuple<std::int64_t, transform::OptimizerKind>> {};

TEST_P(TrainedF64, HasTheReferencesDigits) {
  const auto [micro_batch, kind] = GetParam();
  const auto executable =
      find_target("cpu").compile(training(kind), {.batch = 4, .micro_batch = micro_batch, .threads = 2});
  std::vector<Tensor> inputs = inputs_of(*executable);
  inputs.back() = Tensor::scalar(1e-3f);
  std::vector<Tensor> outputs{Tensor(ElementType::f64, {})};
  executable->run(inputs, outputs);
  const op::Evaluation expected = op::evaluate(training(kind)(4), inputs);
  // What passes from the gradients to the optimiser, and the loss of several micro-batches, are rounded to
  // f32 on the way: a step agrees to those digits.
  constexpr double rounding = 3e-7;
  EXPECT_NEAR(outputs[0].at(0), expected.outputs[0].at(0), rounding * expected.outputs[0].at(0));
  const graph::Graph model = build(4);
  for (const char* name : {"Cu.embed1.weight", "Ni.embed2.weight", "Cu.fit1.weight", "Ni.energy.bias"}) {
    const Tensor& first = model.value(model.find_value(name)).data;
    const Tensor found = executable->state(name), known = expected.states.at(name);
    double largest = 0, apart = 0;
    for (std::int64_t i = 0; i < first.element_count(); ++i) {
      largest = std::max(largest, std::abs(known.at(i) - first.at(i)));
      apart = std::max(apart, std::abs(found.at(i) - known.at(i)));
    }
    EXPECT_GT(largest, 0) << name;
    EXPECT_LE(apart, rounding * largest) << name;
  }
  EXPECT_EQ(without_kernel(executable->summary()), std::set<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(MicroBatchesAndRules, TrainedF64,
                         ::testing::Values(std::tuple(4, transform::OptimizerKind::sgd),
                                           std::tuple(2, transform::OptimizerKind::sgd),
                                           std::tuple(1, transform::OptimizerKind::sgd),
                                           std::tuple(2, transform::OptimizerKind::rmsprop)));

}  // namespace
}  // namespace superstep::target
