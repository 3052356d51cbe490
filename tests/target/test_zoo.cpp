// The models of the zoo, built small, on the CPU target: against the reference evaluation, and by their
// plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "superstep/base/random.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"
#include "superstep/target/target.h"
#include "superstep/transform/rewrite.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"
#include "tests/target/zoo_input.h"
#include "tests/target/zoo_models.h"
#include "tests/target/zoo_step.h"

namespace superstep {
namespace {

using target::Executable;
using target::GraphAtBatch;
using test::random_input;

using test::Model;
using test::zoo_models;

std::vector<Tensor> inputs_of(const Executable& executable) {
  std::vector<Tensor> inputs;
  for (const auto& port : executable.inputs()) inputs.push_back(random_input(port, inputs.size() + 1));
  return inputs;
}

std::vector<Tensor> outputs_of(const Executable& executable) {
  std::vector<Tensor> outputs;
  for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  return outputs;
}

using test::build;
using test::serving;
using test::training;

using test::largest;
using test::worst_difference;

class Zoo : public ::testing::TestWithParam<Model> {};

TEST_P(Zoo, InfersAsTheReferenceDoes) {
  const Model& model = GetParam();
  const auto cpu = target::find_target("cpu").compile(serving(model), {.batch = model.batch, .threads = 1});
  const auto reference = target::find_target("reference").compile(serving(model), {.batch = model.batch});
  const auto inputs = inputs_of(*cpu);
  auto actual = outputs_of(*cpu), expected = outputs_of(*reference);
  cpu->run(inputs, actual);
  reference->run(inputs, expected);
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_LT(worst_difference(actual[i], expected[i]), 1e-4 * std::max(1e-2, largest(expected[i])));
}

TEST_P(Zoo, TrainsAsTheReferenceDoes) {
  const Model& model = GetParam();
  const auto cpu = target::find_target("cpu").compile(training(model), {.batch = model.batch, .threads = 2});
  const auto reference = target::find_target("reference").compile(training(model), {.batch = model.batch});
  test::expect_steps_alike(*cpu, *reference, model, inputs_of(*cpu));
}

// No step of a plan is left to the reference evaluation but some on a few integers.
TEST_P(Zoo, HasKernelsForItsTrainingStep) {
  const Model& model = GetParam();
  const auto cpu = target::find_target("cpu").compile(training(model), {.batch = model.batch, .threads = 1});
  for (const target::PlanStep& step : cpu->summary().steps)
    if (step.kernel == "reference evaluation") {
      EXPECT_LE(step.bytes, 4096) << step.op << " of " << step.node
                                  << (step.refusals.empty() ? "" : ": " + step.refusals[0]);
    }
}

// Dropout and normalisation make single losses noisy: the mean of the last three against the first.
TEST_P(Zoo, LearnsOneBatch) {
  const Model& model = GetParam();
  if (model.rate == 0) GTEST_SKIP() << "what a few steps do to the loss is not to be seen";
  const auto learn = [&](float rate) {
    const auto cpu = target::find_target("cpu").compile(
        [&](std::int64_t batch) {
          const workload::Workload& workload = workload::find_workload(model.workload);
          return transform::make_training_step(build(model, batch), workload.training.loss,
                                               {.kind = transform::OptimizerKind::adam});
        },
        {.batch = model.batch, .threads = 1});
    auto inputs = inputs_of(*cpu);
    inputs.back() = Tensor::scalar(rate);
    auto outputs = outputs_of(*cpu);
    std::vector<double> losses;
    for (int i = 0; i < 24; ++i) {
      cpu->run(inputs, outputs);
      losses.push_back(outputs[0].at(0));
    }
    const double last = (losses[21] + losses[22] + losses[23]) / 3;
    return last / losses[0];
  };
  EXPECT_LT(learn(model.rate), 0.97);
  EXPECT_GT(learn(0), 0.9);  // the control: without a learning rate nothing is learnt
}

INSTANTIATE_TEST_SUITE_P(Models, Zoo, ::testing::ValuesIn(zoo_models()));

// By their published recipes: optimiser, smoothed labels, averages, masks. A step's length hardly depends on
// the gradient's there, so that a parameter whose gradient is rounding may be a step away.
TEST(ZooByPublishedRecipes, TrainsAsTheReferenceDoes) {
  for (const Model& model : {Model{"uno", {"width=24"}, 8}, Model{"mlp", {}, 8},
                             Model{"mobilenet-v3-small", {"size=32", "classes=10"}, 4}}) {
    SCOPED_TRACE(model.workload);
    const workload::Workload& workload = workload::find_workload(model.workload);
    const workload::Recipe& recipe = *workload.published;
    const GraphAtBatch step = [&](std::int64_t batch) {
      return transform::make_training_step(
          workload::build_model(workload, batch, workload::with_options_of(recipe, model.options)),
          recipe.loss, recipe.optimizer, {.seed = 3, .average = recipe.average > 0 ? 0.5 : 0});
    };
    const auto cpu = target::find_target("cpu").compile(step, {.batch = model.batch, .threads = 2});
    const auto reference = target::find_target("reference").compile(step, {.batch = model.batch});
    std::map<std::string, Tensor> begun;
    for (const std::string& name : cpu->state_names())
      if (name.starts_with("average/")) begun[name] = cpu->state(name);
    auto inputs = inputs_of(*cpu);
    inputs.back() = Tensor::scalar(1e-4f);
    auto actual = outputs_of(*cpu), expected = outputs_of(*reference);
    for (int i = 0; i < 3; ++i) {
      cpu->run(inputs, actual);
      reference->run(inputs, expected);
      EXPECT_NEAR(actual[0].at(0), expected[0].at(0), 2e-3 * std::max(1.0, std::abs(expected[0].at(0)))) << i;
    }
    // RMSProp begins with squares of one: there steps are as long as gradients, and averages move with them.
    double moved = 0, apart = 0;
    for (const auto& [name, tensor] : begun) {
      moved = std::max(moved, worst_difference(cpu->state(name), tensor));
      apart = std::max(apart, worst_difference(cpu->state(name), reference->state(name)));
    }
    EXPECT_LE(apart, 0.03 * moved);
    EXPECT_EQ(moved > 0, recipe.average > 0);
  }
}

// The worst differences from the reference, of the loss relative to it, and of the parameters after a step.
struct LstmError {
  double loss = 0, parameter = 0;
};

LstmError lstm_error(const std::string& products) {
  struct Kind {
    const char* direction;
    std::int64_t layout, batch;
  };
  LstmError worst;
  for (const Kind& kind : {Kind{"forward", 0, 3}, Kind{"reverse", 0, 1}, Kind{"bidirectional", 0, 2},
                           Kind{"forward", 1, 3}, Kind{"reverse", 1, 1}}) {
    const GraphAtBatch model = [&](std::int64_t batch) {
      graph::Graph graph("lstm");
      op::Builder b(graph);
      const std::int64_t d = std::string(kind.direction) == "bidirectional" ? 2 : 1, units = 16;
      const auto state = [&](const char* name, const Shape& shape, std::uint64_t seed) {
        Tensor tensor(ElementType::f32, shape);
        RandomStream random(seed);
        for (float& value : tensor.as<float>()) value = static_cast<float>(random.uniform(-0.5, 0.5));
        return b.state(name, tensor);
      };
      const op::Var x = b.input("x", ElementType::f32, kind.layout ? Shape{batch, 5, 3} : Shape{5, batch, 3});
      const Shape states = kind.layout ? Shape{batch, d, units} : Shape{d, batch, units};
      const op::Var inputs[] = {x,
                                state("w", {d, 4 * units, 3}, 1),
                                state("r", {d, 4 * units, units}, 2),
                                state("b", {d, 8 * units}, 3),
                                op::Var(),
                                state("h0", states, 4),
                                state("c0", states, 5)};
      const auto y = b.node(
          "LSTM", inputs,
          {{"direction", std::string(kind.direction)}, {"layout", kind.layout}, {"products", products}}, 3);
      b.output("y", y[0]), b.output("h", y[1]), b.output("c", y[2]);
      return graph;
    };
    const GraphAtBatch step = [&](std::int64_t batch) {
      transform::LossSpec loss;
      loss.terms = {
          {.output = "y", .target = "ty"}, {.output = "h", .target = "th"}, {.output = "c", .target = "tc"}};
      return transform::make_training_step(model(batch), loss, {.kind = transform::OptimizerKind::sgd});
    };
    const target::CompileOptions options{.batch = kind.batch, .micro_batch = kind.batch};
    const auto cpu = target::find_target("cpu").compile(step, options);
    const auto reference = target::find_target("reference").compile(step, options);
    for (const target::PlanStep& planned : cpu->summary().steps)
      EXPECT_NE(planned.kernel, "reference evaluation")
          << planned.op << ", " << kind.direction << kind.layout;
    const auto inputs = inputs_of(*cpu);
    auto actual = outputs_of(*cpu), expected = outputs_of(*reference);
    cpu->run(inputs, actual);
    reference->run(inputs, expected);
    worst.loss = std::max(worst.loss, std::abs(actual[0].at(0) / expected[0].at(0) - 1));
    for (const char* name : {"w", "r", "b", "h0", "c0"})
      worst.parameter = std::max(worst.parameter, worst_difference(cpu->state(name), reference->state(name)));
  }
  return worst;
}

TEST(ZooLstm, EveryKindOfLayerAgreesWithTheReference) {
  const LstmError error = lstm_error("f32");
  EXPECT_LT(error.loss, 1e-5);
  EXPECT_LT(error.parameter, 2e-6);
}

// Products of bf16 round what they read by up to 2^-9; a step changes parameters by 0.01 or so. Rounding must
// be seen where there are such products.
TEST(ZooLstm, EveryKindOfLayerAgreesWithTheReferenceInReducedPrecision) {
  const LstmError error = lstm_error("bf16");
  EXPECT_LT(error.loss, 5e-3);
  EXPECT_LT(error.parameter, 2e-4);
  if (kernels::multiplies_pairs_fast()) {
    EXPECT_GT(error.parameter, 2e-6);
  }
}

}  // namespace
}  // namespace superstep
