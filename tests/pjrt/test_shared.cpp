// A batch shared by several devices behind a plug-in, in one program or by ranks: what one device computes of
// the whole. Here the devices are this processor, several times.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <memory>
#include <set>
#include <thread>

#include "superstep/op/core/builder.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/product/matmul.h"
#include "superstep/target/pjrt/stablehlo/sharding.h"
#include "superstep/target/pjrt/step_parts.h"
#include "superstep/target/target.h"
#include "tests/expect_error.h"
#include "tests/pjrt/plugins.h"
#include "tests/target/zoo_input.h"
#include "tests/target/zoo_models.h"
#include "tests/target/zoo_step.h"

namespace superstep {
namespace {

using target::Executable;
namespace stablehlo = target::stablehlo;

std::unique_ptr<Executable> compiled(const target::GraphAtBatch& model, std::int64_t batch,
                                     const target::Chips& chips, const char* target = "pjrt-cpu") {
  return target::find_target(target).compile(model, {.batch = batch, .micro_batch = batch, .chips = chips});
}

std::vector<Tensor> inputs_of(const Executable& executable) {
  std::vector<Tensor> inputs;
  for (const auto& port : executable.inputs()) inputs.push_back(test::random_input(port, inputs.size() + 1));
  return inputs;
}

test::Model model_of(const std::string& workload, std::size_t which = 0) {
  for (const test::Model& model : test::zoo_models())
    if (model.workload == workload && which-- == 0) return model;
  throw std::runtime_error(workload);
}

TEST(Shardings, CutWhatHasEqualSharesAndNothingElse) {
  EXPECT_EQ(stablehlo::axis_of_rows({8, 3}, 8, 4), 0);
  EXPECT_EQ(stablehlo::axis_of_rows({6, 3}, 6, 4), stablehlo::whole);
  EXPECT_EQ(stablehlo::axis_of_rows({8, 3}, 16, 4), stablehlo::whole);  // no rows of the batch
  EXPECT_EQ(stablehlo::axis_of_rows({}, 1, 4), stablehlo::whole);
  EXPECT_EQ(stablehlo::axis_of_parameter({64, 128}, 4), 1);
  EXPECT_EQ(stablehlo::axis_of_parameter({128, 67}, 4), 0);
  EXPECT_EQ(stablehlo::axis_of_parameter({127, 67}, 4), stablehlo::whole);
  EXPECT_EQ(stablehlo::axis_of_parameter({64}, 4), stablehlo::whole);  // not worth it
  EXPECT_EQ(stablehlo::sharding_text(1, 3, 4), "{devices=[1,4,1]<=[4]}");
  EXPECT_EQ(stablehlo::sharding_text(stablehlo::whole, 3, 4), "{replicated}");
  EXPECT_EQ(stablehlo::piece_shape({6, 8}, 1, 4), (Shape{6, 2}));
}

// ---- one program on several devices

class SharedByDevices : public ::testing::TestWithParam<test::Model> {};

// Statistics of normalizations, masks of dropout and losses are of the whole batch.
TEST_P(SharedByDevices, TrainsAsTheReferenceDoes) {
  NEEDS_CPU_PLUGIN();
  const auto step = test::training(GetParam());
  for (const bool divided : {false, true}) {
    if (divided && GetParam().workload != std::string_view("gpt2")) continue;  // one is enough
    const auto devices = compiled(step, GetParam().batch, {.replicas = 2, .divide_states = divided});
    const auto reference = compiled(step, GetParam().batch, {}, "reference");
    test::expect_steps_alike(*devices, *reference, GetParam(), inputs_of(*devices));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SharedByDevices,
                         ::testing::Values(model_of("uno"), model_of("resnet50", 1), model_of("gpt2"),
                                           model_of("schnet")),
                         [](const auto& instance) {
                           std::string name = testing::PrintToString(instance.param);
                           std::ranges::replace_if(
                               name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name;
                         });

TEST(DevicesOfOneBatch, OneTwoAndFourGiveTheLossOfOne) {
  NEEDS_CPU_PLUGIN();
  const test::Model model = model_of("gpt2");
  const auto one = compiled(test::training(model), 4, {});
  const std::vector<Tensor> inputs = inputs_of(*one);
  std::vector<std::vector<Tensor>> outputs;
  for (const int devices : {1, 2, 4}) {
    const auto executable = compiled(test::training(model), 4, {.replicas = devices});
    EXPECT_EQ(executable->summary().devices, devices);
    for (const std::string& name : one->state_names()) executable->set_state(name, one->state(name));
    outputs.push_back(test::outputs_for(*executable));
    for (int i = 0; i < 5; ++i) executable->run(inputs, outputs.back());
    EXPECT_NEAR(outputs.back()[0].at(0), outputs[0][0].at(0), 1e-5 * std::abs(outputs[0][0].at(0)));
  }
}

TEST(DevicesOfOneBatch, ServeTheRowsThatOneServes) {
  NEEDS_CPU_PLUGIN();
  const test::Model model = model_of("resnet50");
  for (const std::int64_t batch : {4, 3}) {  // of three each device has all
    const auto two = compiled(test::serving(model), batch, {.replicas = 2}),
               one = compiled(test::serving(model), batch, {});
    const std::vector<Tensor> inputs = inputs_of(*one);
    for (const std::string& name : one->state_names()) two->set_state(name, one->state(name));
    auto expected = test::outputs_for(*one), actual = test::outputs_for(*two);
    one->run(inputs, expected);
    two->run(inputs, actual);
    EXPECT_LT(test::worst_difference(actual[0], expected[0]), 1e-4 * test::largest(expected[0]));
  }
}

// A parameter is where it was when it comes back, piece by piece, whatever axis it was cut along.
TEST(DevicesOfOneBatch, StatesInPiecesAreReadAndSetWhole) {
  NEEDS_CPU_PLUGIN();
  const auto model = [](std::int64_t batch) {
    graph::Graph graph("pieces");
    op::Builder b(graph);
    const op::Var x = b.input("x", ElementType::f32, {batch, 64});
    const op::Var tall = b.state("tall", test::random_input({"t", {ElementType::f32, Shape{64, 20}}}, 3));
    const op::Var wide = b.state("wide", test::random_input({"w", {ElementType::f32, Shape{20, 64}}}, 4));
    b.update(tall, tall * 2.0);
    b.update(wide, wide + 1.0);
    b.output("y", x * 3.0);
    return graph;
  };
  const auto executable = compiled(model, 4, {.replicas = 4, .divide_states = true});
  const Tensor tall = executable->state("tall"), wide = executable->state("wide");
  EXPECT_EQ(tall.at(77), test::random_input({"t", {ElementType::f32, Shape{64, 20}}}, 3).at(77));
  auto outputs = test::outputs_for(*executable);
  const std::vector<Tensor> inputs = inputs_of(*executable);
  executable->run(inputs, outputs);
  for (const std::int64_t i : {0, 77, 640, 1279}) {
    EXPECT_EQ(executable->state("tall").at(i), 2 * tall.at(i)) << i;  // exact
    EXPECT_FLOAT_EQ(static_cast<float>(executable->state("wide").at(i)), static_cast<float>(wide.at(i)) + 1)
        << i;
  }
  for (std::int64_t i = 0; i < inputs[0].element_count(); ++i)
    ASSERT_FLOAT_EQ(static_cast<float>(outputs[0].at(i)), 3 * static_cast<float>(inputs[0].at(i)));
  executable->set_state("wide", wide);
  EXPECT_EQ(executable->state("wide").at(1279), wide.at(1279));
}

// What a device holds is its share: of the activations, and of parameters where they are divided.
TEST(DevicesOfOneBatch, TakeLessMemoryEach) {
  NEEDS_CPU_PLUGIN();
  const auto model = [](std::int64_t batch) {
    graph::Graph graph("wide");
    op::Builder b(graph);
    const op::Var x = b.input("x", ElementType::f32, {batch, 64});
    const op::Var inner = b.state("inner", test::random_input({"t", {ElementType::f32, Shape{64, 512}}}, 3));
    const op::Var outer = b.state("outer", test::random_input({"w", {ElementType::f32, Shape{512, 64}}}, 4));
    b.output("y", op::matmul(op::tanh(op::matmul(x, inner)), outer));
    return graph;
  };
  constexpr std::int64_t batch = 4096;  // tanh's results: 8 MB
  const auto one = compiled(model, batch, {})->summary(),
             four = compiled(model, batch, {.replicas = 4})->summary(),
             divided = compiled(model, batch, {.replicas = 4, .divide_states = true})->summary();
  EXPECT_LT(four.activation_bytes, one.activation_bytes / 3);
  EXPECT_EQ(four.state_bytes, one.state_bytes);
  EXPECT_EQ(divided.state_bytes, one.state_bytes / 4);
}

TEST(DevicesOfOneBatch, WhatCannotBeIsRefused) {
  NEEDS_CPU_PLUGIN();
  const auto step = test::training(model_of("lstm"));
  expect_error(ErrorCode::invalid_argument, {"99 replicas", "there are", "list devices"},
               [&] { compiled(step, 198, {.replicas = 99}); });
  expect_error(ErrorCode::invalid_argument, {"on the first devices", "leave :1 away"},
               [&] { compiled(step, 4, {.replicas = 2}, "pjrt-cpu:1"); });
  expect_error(ErrorCode::unsupported, {"no model's layers", "--pipeline"},
               [&] { compiled(step, 4, {.stages = 2}); });
}

// ---- by ranks

// The means over two parts that run in a thread each.
class TwoParts {
 public:
  class Part : public target::Exchange {
   public:
    Part(TwoParts& both, std::size_t index) : both_(both), index_(index) {}
    std::size_t range_values() const override { return 100; }
    std::span<float> open(std::size_t values, std::vector<target::ValueRange> ranges) override {
      std::size_t covered = 0;
      for (const auto& range : ranges) {
        EXPECT_EQ(range.begin, covered);
        covered += range.count;
      }
      EXPECT_EQ(covered, values);
      ranges_ = ranges.size();
      return both_.values_[index_] = std::vector<float>(values), both_.values_[index_];
    }
    void begin() override { ready_ = 0; }
    void ready(std::size_t) override { ++ready_; }
    void progress() override {}
    void finish() override {
      EXPECT_EQ(ready_, ranges_);
      both_.barrier_.arrive_and_wait();
      std::vector<float> means;
      for (std::size_t i = 0; i < both_.values_[0].size(); ++i)
        means.push_back((both_.values_[0][i] + both_.values_[1][i]) / 2);
      both_.barrier_.arrive_and_wait();
      std::ranges::copy(means, both_.values_[index_].begin());
    }
    void average_over_span(std::span<float>) override { ADD_FAILURE(); }

   private:
    TwoParts& both_;
    std::size_t index_, ranges_ = 0, ready_ = 0;
  };

  Part first{*this, 0}, second{*this, 1};

 private:
  std::vector<float> values_[2];
  std::barrier<> barrier_{2};
};

Tensor rows_of(const Tensor& whole, const graph::ValueType& type, std::size_t part) {
  if (whole.shape() == type.shape) return whole;
  Tensor rows(type.element, type.shape);
  std::copy_n(whole.bytes() + part * rows.byte_count(), rows.byte_count(), rows.bytes());
  return rows;
}

// One after the other is compiled, both run at once.
void expect_two_ranks_train_as_one(const test::Model& model, int steps) {
  const auto step = test::training(model);
  const auto reference = compiled(step, model.batch, {}, "reference");
  const std::vector<Tensor> inputs = inputs_of(*reference);
  TwoParts parts;
  std::vector<std::unique_ptr<Executable>> ranks;
  for (target::Exchange* exchange : {&parts.first, &parts.second})
    ranks.push_back(
        target::find_target("pjrt-cpu")
            .compile(step,
                     {.batch = model.batch / 2,
                      .parts = {.count = 2, .index = static_cast<int>(ranks.size()), .exchange = exchange}}));
  for (const std::string& name : reference->state_names())
    for (const auto& rank : ranks) rank->set_state(name, reference->state(name));
  std::vector<std::vector<Tensor>> outputs(2);
  const auto train = [&](std::size_t part) {
    std::vector<Tensor> own;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      own.push_back(rows_of(inputs[i], ranks[part]->inputs()[i].type, part));
    outputs[part] = test::outputs_for(*ranks[part]);
    for (int i = 0; i < steps; ++i) ranks[part]->run(own, outputs[part]);
  };
  std::thread other(train, 1);
  train(0);
  other.join();
  auto expected = test::outputs_for(*reference);
  for (int i = 0; i < steps; ++i) reference->run(inputs, expected);
  EXPECT_EQ(outputs[0][0].at(0), outputs[1][0].at(0));
  EXPECT_NEAR(outputs[0][0].at(0), expected[0].at(0), 1e-4 * std::abs(expected[0].at(0)));
  for (const std::string& name : reference->state_names()) {
    const Tensor after = reference->state(name);
    EXPECT_LE(test::worst_difference(ranks[0]->state(name), after), 1e-4 * test::largest(after) + 1e-6)
        << name;
    EXPECT_EQ(test::worst_difference(ranks[0]->state(name), ranks[1]->state(name)), 0) << name;
  }
}

TEST(RanksOnDevices, TrainWhatOneTrains) {
  NEEDS_CPU_PLUGIN();
  expect_two_ranks_train_as_one(model_of("lstm"), 3);
}

// The program before the update reads kernels that another program changes.
TEST(RanksOnDevices, TrainConvolutions) {
  NEEDS_CPU_PLUGIN();
  expect_two_ranks_train_as_one(model_of("cookienetae"), 3);
}

// The rows of the second rank have masks of their own, and the next step's begin behind them.
TEST(RanksOnDevices, HaveTheMasksOfTheWholeBatch) {
  NEEDS_CPU_PLUGIN();
  expect_two_ranks_train_as_one(model_of("uno"), 3);
}

TEST(RanksOnDevices, JointStatisticsAreRefused) {
  NEEDS_CPU_PLUGIN();
  TwoParts parts;
  const test::Model model = model_of("resnet50");
  const auto step = [&](std::int64_t batch) {
    return transform::make_training_step(test::build(model, batch),
                                         workload::find_workload(model.workload).training.loss,
                                         {.kind = transform::OptimizerKind::sgd}, {.joint_statistics = true});
  };
  expect_error(ErrorCode::unsupported, {"do not normalize", "--batch-norm-span"}, [&] {
    target::find_target("pjrt-cpu")
        .compile(step, {.batch = 2, .parts = {.count = 2, .index = 0, .exchange = &parts.first}});
  });
}

TEST(StepParts, WhatCrossesIsMadeBeforeAndReadByTheUpdate) {
  const graph::Graph step = test::training(model_of("lstm"))(2);
  const auto crossing = target::pjrt::crossing_values(step);
  EXPECT_FALSE(crossing.empty());
  const graph::Graph before = target::pjrt::before_update(step), update = target::pjrt::update_alone(step);
  EXPECT_EQ(before.outputs().size(), step.outputs().size() + crossing.size());
  EXPECT_TRUE(before.updates().empty());
  EXPECT_EQ(update.updates().size(), step.updates().size());
  EXPECT_EQ(update.states().size(), step.states().size());
  EXPECT_EQ(update.inputs().size(), 1 + crossing.size());  // the learning rate, no batch
  for (const graph::Node& node : update.nodes()) EXPECT_EQ(node.phase, graph::Phase::update);
  for (const graph::Node& node : before.nodes()) EXPECT_NE(node.phase, graph::Phase::update);
}

}  // namespace
}  // namespace superstep
