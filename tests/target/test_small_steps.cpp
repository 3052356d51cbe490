// What a step of a tiny model must not pay for: sums of one micro-batch, packing that moves nothing, counters
// by the reference evaluation, denormal numbers.
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/target/target.h"
#include "superstep/transform/training/training_step.h"
#include "tests/contains.h"
#include "tests/target/models.h"

namespace superstep {
namespace {

graph::Graph perceptron(std::int64_t batch) {
  graph::Graph graph("perceptron");
  op::Builder b(graph);
  test::Layers layers(b, 5);
  op::Var y = op::relu(layers.dense(b.input("x", ElementType::f32, {batch, 20}), "fc1", 48));
  y = op::relu(layers.dense(y, "fc2", 64));
  b.output("y", layers.dense(y, "fc3", 1));
  return graph;
}

graph::Graph training(std::int64_t batch) {
  return transform::make_training_step(perceptron(batch), {{transform::LossTerm{.output = "y"}}}, {});
}

struct Runner {
  Runner(const char* target, const target::GraphAtBatch& model, target::CompileOptions options)
      : executable(target::find_target(target).compile(model, options)) {
    std::uint64_t seed = 3;
    for (const auto& port : executable->inputs())
      inputs.push_back(port.name == "learning_rate"
                           ? Tensor::scalar(0.01f)
                           : test::random_tensor(port.type.element, port.type.shape, seed++));
    for (const auto& port : executable->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  }
  void run() { executable->run(inputs, outputs); }

  std::unique_ptr<target::Executable> executable;
  std::vector<Tensor> inputs, outputs;
};

void expect_same_states(const Runner& actual, const Runner& expected, double tolerance) {
  for (const std::string& name : expected.executable->state_names()) {
    const Tensor a = actual.executable->state(name), b = expected.executable->state(name);
    for (std::int64_t i = 0; i < b.element_count(); ++i)
      ASSERT_NEAR(a.at(i), b.at(i), tolerance) << name << " at " << i;
  }
}

// What one step leaves in a gradient's memory must not reach the next, whether it is added to or written.
TEST(SmallSteps, OneMicroBatchAndSeveralStepAlike) {
  Runner whole("cpu", training, {.batch = 32, .micro_batch = 32, .threads = 1});
  Runner split("cpu", training, {.batch = 32, .micro_batch = 8, .threads = 1});
  Runner reference("reference", training, {.batch = 32});
  for (int i = 0; i < 4; ++i)
    for (Runner* runner : {&whole, &split, &reference}) runner->run();
  expect_same_states(whole, reference, 1e-4);
  expect_same_states(split, reference, 1e-4);
  EXPECT_EQ(whole.executable->state("step").at(0), 4);
}

TEST(SmallSteps, WeightsAreReadWhereTheyLieUntilPackedOnesAreReadTwice) {
  const auto count = [](std::int64_t micro_batch, const char* words) {
    const Runner runner("cpu", training, {.batch = 32, .micro_batch = micro_batch, .threads = 1});
    return std::ranges::count_if(runner.executable->summary().steps,
                                 [&](const target::PlanStep& step) { return contains(step.kernel, words); });
  };
  EXPECT_EQ(count(32, "pack weights"), 0);
  EXPECT_GE(count(32, "weights as they lie"), 4);  // two layers, forward and back; the third has one output
  EXPECT_EQ(count(8, "weights as they lie"), 0);
}

TEST(SmallSteps, CountersHaveAKernel) {
  Runner runner("cpu", training, {.batch = 32, .micro_batch = 32, .threads = 1, .measure_steps = true});
  runner.run();
  const auto steps = runner.executable->timeline().steps;
  EXPECT_TRUE(std::ranges::any_of(
      steps, [](const target::PlanStep& step) { return step.kernel == "sum of integers"; }));
  EXPECT_TRUE(std::ranges::none_of(
      steps, [](const target::PlanStep& step) { return step.kernel == "reference evaluation"; }));
}

constexpr float denormal = 1e-40f;

TEST(SmallSteps, MomentsThatFadeAwayEndAtZero) {
  for (const int threads : {1, 2}) {
    Runner runner("cpu", training, {.batch = 32, .threads = threads});
    const std::string name = "adam.m/fc1.weight";
    Tensor moment = runner.executable->state(name);
    for (std::int64_t i = 0; i < moment.element_count(); ++i) moment.set(i, denormal);
    runner.executable->set_state(name, moment);
    for (std::int64_t i = 0; i < runner.inputs[0].element_count(); ++i) runner.inputs[0].set(i, 0);
    runner.run();  // the gradient of the first weights is zero
    const Tensor after = runner.executable->state(name);
    for (std::int64_t i = 0; i < after.element_count(); ++i) ASSERT_EQ(after.at(i), 0) << i;
  }
}

// The control: inference keeps them, and so does the caller after a training step.
TEST(SmallSteps, DenormalsStayElsewhere) {
  const auto doubled = [](std::int64_t batch) {
    graph::Graph graph("doubled");
    op::Builder b(graph);
    const op::Var x = b.input("x", ElementType::f32, {batch, 20});
    b.output("y", x + x);
    return graph;
  };
  Runner trains("cpu", training, {.batch = 4, .threads = 1});
  trains.run();
  Runner runner("cpu", doubled, {.batch = 4, .threads = 1});
  for (std::int64_t i = 0; i < runner.inputs[0].element_count(); ++i) runner.inputs[0].set(i, denormal);
  runner.run();
  EXPECT_EQ(static_cast<float>(runner.outputs[0].at(0)), denormal + denormal);
  volatile float here = denormal;
  here = here + here;
  EXPECT_GT(here, 0);
}

}  // namespace
}  // namespace superstep
