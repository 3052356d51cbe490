// Graphs over several chips: pipelines, micro-batches and replicas, against one chip and the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "superstep/machine/borders.h"
#include "superstep/target/ipu/chips/chips.h"
#include "superstep/target/ipu/ipu.h"
#include "superstep/target/ipu/lower/timed.h"
#include "superstep/target/ports.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using target::Chips;
using target::Executable;
using target::GraphAtBatch;
using test::inputs_of;

std::vector<Tensor> run(Executable& executable, std::span<const Tensor> inputs) {
  std::vector<Tensor> outputs;
  for (const Executable::Port& port : executable.outputs())
    outputs.emplace_back(port.type.element, port.type.shape);
  executable.run(inputs, outputs);
  return outputs;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double scale = 1e-6, difference = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) {
    scale = std::max(scale, std::abs(b.at(i)));
    difference = std::max(difference, std::abs(a.at(i) - b.at(i)));
  }
  return difference / scale;
}

std::unique_ptr<Executable> on_chips(const GraphAtBatch& model, std::int64_t batch, Chips chips,
                                     const char* machine = "gc200") {
  return target::find_target(machine).compile(model, {.batch = batch, .chips = std::move(chips)});
}

GraphAtBatch zoo(const char* name, std::vector<std::string> options = {}) {
  return [=](std::int64_t batch) {
    return workload::build_model(workload::find_workload(name), batch, options);
  };
}

GraphAtBatch trained(const GraphAtBatch& model, transform::OptimizerKind kind) {
  return [=](std::int64_t batch) {
    return transform::make_training_step(model(batch), {}, transform::OptimizerSpec{.kind = kind}, {});
  };
}

struct PipelineCase {
  const char* name;
  GraphAtBatch model;
  Chips chips;
};

void PrintTo(const PipelineCase& test, std::ostream* out) { *out << test.name; }

class Pipelines : public ::testing::TestWithParam<PipelineCase> {};

TEST_P(Pipelines, GiveWhatTheReferenceGives) {
  const PipelineCase& test = GetParam();
  const std::int64_t batch = 2 * test.chips.accumulate * test.chips.replicas;
  const auto pipeline = on_chips(test.model, batch, test.chips);
  const auto reference = target::find_target("reference").compile(test.model, {.batch = batch});
  const auto inputs = inputs_of(*reference);
  for (int again = 0; again < 2; ++again) {
    const auto actual = run(*pipeline, inputs), expected = run(*reference, inputs);
    for (std::size_t o = 0; o < expected.size(); ++o)
      EXPECT_LT(largest_difference(actual[o], expected[o]), 1e-5);
  }
  const bsp::Profile& profile = *target::ipu::profile_of(*pipeline);
  std::uint64_t link_bytes = 0;
  for (std::size_t i = 0; i < profile.total.times.size(); ++i)
    link_bytes += profile.total.times[i] * profile.compilation.steps[i].link_bytes;
  EXPECT_EQ(link_bytes > 0, test.chips.stages > 1 || test.chips.pipeline.size() > 1);
}

INSTANTIATE_TEST_SUITE_P(
    Chips, Pipelines,
    ::testing::Values(
        PipelineCase{
            "perceptron", [](std::int64_t b) { return test::perceptron(b); }, {.stages = 2, .accumulate = 5}},
        PipelineCase{"attention",
                     [](std::int64_t b) { return test::attention_network(b); },
                     {.pipeline = {1, 1}, .accumulate = 1}},
        PipelineCase{"pooled",
                     [](std::int64_t b) { return test::pooled_network(b); },
                     {.pipeline = {1, 1}, .accumulate = 2}},
        PipelineCase{"braggnn", zoo("braggnn"), {.pipeline = {2, 3, 3}, .accumulate = 4}},
        // Skips pass over the stages between.
        PipelineCase{
            "unet", zoo("unet-64", {"size=16", "width=4"}), {.pipeline = {3, 4, 3, 3}, .accumulate = 3}},
        PipelineCase{"uno", zoo("uno", {"width=24"}), {.pipeline = {1, 1}, .accumulate = 3, .replicas = 2}},
        PipelineCase{"replicas",
                     [](std::int64_t b) { return test::perceptron(b); },
                     {.accumulate = 2, .replicas = 3}}),
    [](const auto& one) { return one.param.name; });

// The bytes on the links are those of the values that cross, once a micro-batch.
TEST(Chips, LinksCarryWhatCrosses) {
  const GraphAtBatch model = zoo("mlp");
  const graph::Graph graph = target::prepare_graph(model(4));
  const int shares[] = {2, 2};
  const std::vector<std::size_t> stages = target::ipu::stages_of(graph, shares);
  std::size_t number = 0;
  std::vector<std::size_t> made(graph.value_count(), 0);
  std::vector<bool> counted(graph.value_count(), false);
  double crossing = 0;
  for (const graph::Node& node : graph.nodes()) {
    const std::size_t stage = stages[number++];
    for (const graph::ValueId id : node.inputs)
      if (id.valid() && graph.value(id).kind == graph::ValueKind::computed && made[id.index()] != stage &&
          !counted[id.index()]) {
        counted[id.index()] = true;
        crossing += static_cast<double>(graph.type(id).shape.element_count()) * 4;
      }
    for (const graph::ValueId id : node.outputs)
      if (id.valid()) made[id.index()] = stage;
  }
  ASSERT_GT(crossing, 0);
  const auto pipeline = on_chips(model, 12, {.pipeline = {2, 2}, .accumulate = 3});
  run(*pipeline, inputs_of(*pipeline));
  const bsp::Profile& profile = *target::ipu::profile_of(*pipeline);
  double link_bytes = 0;
  for (std::size_t i = 0; i < profile.total.times.size(); ++i)
    link_bytes += static_cast<double>(profile.total.times[i] * profile.compilation.steps[i].link_bytes);
  EXPECT_EQ(link_bytes, 3 * crossing);
}

// What is predicted to pass the borders of a pipeline is what its program sends over the links, where values
// skip stages too.
TEST(Chips, LinksCarryWhatIsPredicted) {
  struct Case {
    GraphAtBatch model;
    std::vector<int> shares;
  };
  for (const Case& test :
       {Case{zoo("mlp"), {2, 2}}, Case{zoo("unet-64", {"size=16", "width=4"}), {3, 4, 3, 3}},
        Case{zoo("braggnn"), {2, 3, 3}}}) {
    const graph::Graph graph = target::prepare_graph(test.model(2));
    const machine::Precision f32 = machine::precision_from_name("f32");
    std::vector<machine::Work> works = machine::works_of(graph, f32, {.fuse_across_layers = false});
    machine::assign_stages(graph, works, test.shares);
    double predicted = 0;
    for (const machine::Border& border : machine::borders_of(graph, works, f32, test.shares.size())) {
      EXPECT_GT(border.up, 0);
      EXPECT_EQ(border.down, 0);
      predicted += border.up;
    }
    const auto counted = target::ipu::timed_profile(
        test.model, "gc200", {.batch = 6, .chips = {.pipeline = test.shares, .accumulate = 3}});
    double sent = 0;
    const bsp::Profile& profile = counted.profile;
    for (std::size_t i = 0; i < profile.total.times.size(); ++i)
      sent += static_cast<double>(profile.total.times[i] * profile.compilation.steps[i].link_bytes);
    EXPECT_EQ(sent, 3 * predicted);
  }
}

// Stages work at the same time: the run is shorter than what its chips did, and each step is one chip's.
TEST(Chips, StagesOverlap) {
  const auto counted = target::ipu::timed_profile(
      zoo("braggnn"), "gc200", {.batch = 16, .chips = {.pipeline = {4, 4}, .accumulate = 8}});
  const bsp::RunProfile& total = counted.profile.total;
  ASSERT_EQ(total.active.size(), 2U);
  for (const std::uint64_t active : total.active) EXPECT_LE(active, total.cycles);
  EXPECT_LT(total.cycles, total.cost.total());
  EXPECT_TRUE(contains(counted.layout, "2 stages, layers 4,4; 8 micro-batches"));
}

TEST(Chips, NoNodeComesBeforeWhatItNeeds) {
  const graph::Graph graph = target::prepare_graph(zoo("unet-64", {"size=16", "width=4"})(2));
  const int shares[] = {1, 2, 1};
  const std::vector<std::size_t> stages = target::ipu::stages_of(graph, shares);
  std::vector<std::size_t> made(graph.value_count(), 0);
  std::size_t number = 0;
  for (const graph::Node& node : graph.nodes()) {
    for (const graph::ValueId id : node.inputs)
      if (id.valid()) {
        EXPECT_LE(made[id.index()], stages[number]);
      }
    for (const graph::ValueId id : node.outputs)
      if (id.valid()) made[id.index()] = stages[number];
    ++number;
  }
  EXPECT_EQ(*std::max_element(stages.begin(), stages.end()), 2U);
}

// In fewer bits a layer reads a cast of its weights: it is a layer all the same, cut where it is cut in f32,
// and its cast is on its own chip.
TEST(Chips, AreCutAlikeInFewerBits) {
  const graph::Graph model = zoo("conductivity", {"size=heavy", "side=16", "width=2"})(2);
  const int shares[] = {6, 4};
  const auto cut = [&](const graph::Graph& graph) {
    std::map<std::string, std::size_t> stage_of_layer;
    const std::vector<std::size_t> stages = target::ipu::stages_of(graph, shares);
    std::size_t number = 0;
    for (const graph::Node& node : graph.nodes()) {
      if (node.op == "Conv" || node.op == "Gemm") stage_of_layer[node.name] = stages[number];
      if (node.op == "Conv" && graph.value(node.inputs[1]).kind == graph::ValueKind::computed) {
        const auto& cast = graph.value(node.inputs[1]);
        EXPECT_EQ(stages[cast.producer.index()], stages[number]) << node.name;
      }
      ++number;
    }
    return stage_of_layer;
  };
  const auto f32 = cut(target::prepare_graph(graph::Graph(model)));
  const auto f16 = cut(target::prepare_graph(transform::autocast(model, ElementType::f16)));
  ASSERT_EQ(f32.size(), 10u);
  EXPECT_EQ(f32.at("block6.conv"), 0u);
  EXPECT_EQ(f32.at("block7.conv"), 1u);
  EXPECT_EQ(f16, f32);
}

void expect_trains_alike(const GraphAtBatch& step, std::int64_t batch, const Chips& chips, double tolerance,
                         const Chips& other = {}) {
  const auto several = on_chips(step, batch, chips), one = on_chips(step, batch, other);
  const auto inputs = inputs_of(*one);
  const Tensor before = one->state(one->state_names()[0]);
  for (int i = 0; i < 2; ++i) {
    const auto actual = run(*several, inputs), expected = run(*one, inputs);
    for (std::size_t o = 0; o < expected.size(); ++o)
      EXPECT_LT(largest_difference(actual[o], expected[o]), tolerance) << "output " << o;
  }
  for (const std::string& name : one->state_names())
    EXPECT_LT(largest_difference(several->state(name), one->state(name)), tolerance) << name;
}

TEST(Chips, AccumulatedAndReplicatedStepsAreTheStep) {
  const GraphAtBatch model = [](std::int64_t b) { return test::perceptron(b); };
  const GraphAtBatch step = trained(model, transform::OptimizerKind::sgd);
  expect_trains_alike(step, 8, {.accumulate = 4}, 1e-5);
  expect_trains_alike(step, 8, {.replicas = 2}, 1e-5);
  expect_trains_alike(step, 8, {.accumulate = 2, .replicas = 4}, 1e-5);
  expect_trains_alike(trained(model, transform::OptimizerKind::adam), 4, {.accumulate = 2, .replicas = 2},
                      2e-4);
}

TEST(Chips, ModelsOfTheZooTrainOnReplicas) {
  expect_trains_alike(trained(zoo("braggnn"), transform::OptimizerKind::sgd), 2, {.replicas = 2}, 1e-5);
}

// Forward and backward turns on every stage, with what a stage keeps between them.
TEST(Chips, PipelinedStepsAreTheStep) {
  const GraphAtBatch model = [](std::int64_t b) { return test::perceptron(b); };
  const GraphAtBatch step = trained(model, transform::OptimizerKind::sgd);
  expect_trains_alike(step, 8, {.pipeline = {1, 1}, .accumulate = 4}, 1e-5);
  expect_trains_alike(step, 14, {.pipeline = {1, 1, 1}, .accumulate = 7}, 1e-5);
  expect_trains_alike(step, 4, {.pipeline = {1, 1, 1}}, 1e-5);                   // never full
  expect_trains_alike(step, 6, {.pipeline = {1, 1, 1}, .accumulate = 3}, 1e-5);  // just
  expect_trains_alike(trained(model, transform::OptimizerKind::adam), 16,
                      {.pipeline = {2, 1}, .accumulate = 2, .replicas = 4}, 2e-4);
}

TEST(Chips, PipelinedStepsOfConvolutionsAndAttention) {
  const auto sgd = [](const GraphAtBatch& model) { return trained(model, transform::OptimizerKind::sgd); };
  expect_trains_alike(sgd([](std::int64_t b) { return test::pooled_network(b); }), 6,
                      {.pipeline = {1, 1, 1, 1}, .accumulate = 6}, 1e-5);
  expect_trains_alike(sgd([](std::int64_t b) { return test::attention_network(b); }), 4,
                      {.pipeline = {3, 2, 2}, .accumulate = 4}, 1e-4);
  // The table of words is read at both ends; the loss is a mean over the masked words of a micro-batch.
  expect_trains_alike(sgd(zoo("bert-small", {"layers=1", "width=8", "heads=1", "vocabulary=64", "length=4"})),
                      3, {.pipeline = {1, 1, 1}, .accumulate = 3}, 1e-4, {.accumulate = 3});
}

// A training pipeline overlaps its stages, and is counted without being run.
TEST(Chips, PipelinedStepsAreCountedWithoutRunning) {
  const GraphAtBatch step =
      trained([](std::int64_t b) { return test::attention_network(b); }, transform::OptimizerKind::adam);
  const auto counted =
      target::ipu::timed_profile(step, "gc200", {.batch = 8, .chips = {.stages = 2, .accumulate = 8}});
  const bsp::RunProfile& total = counted.profile.total;
  ASSERT_EQ(total.active.size(), 2U);
  for (const std::uint64_t active : total.active) EXPECT_LT(active, total.cycles);
  EXPECT_GT(total.active[0] + total.active[1], total.cycles);
  EXPECT_TRUE(contains(counted.layout, "2 stages")) << counted.layout;
  const auto serial = target::ipu::timed_profile(step, "gc200", {.batch = 8, .chips = {.accumulate = 8}});
  EXPECT_LT(total.cycles, serial.profile.total.cycles);
}

// What is counted is what a run takes.
TEST(Chips, CountedCyclesAreThoseOfARun) {
  const GraphAtBatch step =
      trained([](std::int64_t b) { return test::perceptron(b); }, transform::OptimizerKind::sgd);
  const Chips chips{.pipeline = {1, 1, 1}, .accumulate = 5};
  const auto executed = on_chips(step, 10, chips);
  run(*executed, inputs_of(*executed));
  EXPECT_EQ(target::ipu::timed_profile(step, "gc200", {.batch = 10, .chips = chips}).profile.total.cycles,
            target::ipu::profile_of(*executed)->total.cycles);
}

// The control: gradients that were summed and not averaged would show.
TEST(Chips, AWrongMeanWouldShow) {
  const GraphAtBatch step =
      trained([](std::int64_t b) { return test::perceptron(b); }, transform::OptimizerKind::sgd);
  const auto one = on_chips(step, 4, {}), twice = on_chips(step, 4, {});
  auto inputs = inputs_of(*one);
  run(*one, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (one->inputs()[i].name == "learning_rate") inputs[i] = Tensor::scalar(0.02f);
  run(*twice, inputs);
  const std::string name = one->state_names()[0];
  EXPECT_GT(largest_difference(twice->state(name), one->state(name)), 1e-4);
}

// A new state reaches every chip and replica that has a copy.
TEST(Chips, StatesAreWrittenEverywhere) {
  const GraphAtBatch model = [](std::int64_t b) { return test::perceptron(b); };
  const auto several = on_chips(model, 8, {.pipeline = {1, 1}, .accumulate = 2, .replicas = 2}),
             one = on_chips(model, 8, {});
  for (const std::string& name : one->state_names()) {
    const Tensor other = test::random_tensor(ElementType::f32, one->state(name).shape(), 99);
    several->set_state(name, other);
    one->set_state(name, other);
    EXPECT_EQ(largest_difference(several->state(name), other), 0);
  }
  const auto inputs = inputs_of(*one);
  EXPECT_LT(largest_difference(run(*several, inputs)[0], run(*one, inputs)[0]), 1e-5);
}

std::string refusal(const GraphAtBatch& model, std::int64_t batch, const Chips& chips,
                    const char* machine = "gc200") {
  try {
    on_chips(model, batch, chips, machine);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Chips, RefusesWhatItCannotDo) {
  const GraphAtBatch mlp = zoo("mlp"), step = trained(mlp, transform::OptimizerKind::sgd);
  EXPECT_TRUE(contains(refusal(step, 6, {.replicas = 3}), "power of two"));
  EXPECT_TRUE(contains(refusal(mlp, 7, {.pipeline = {2, 2}, .accumulate = 2}), "does not divide"));
  EXPECT_TRUE(contains(refusal(mlp, 8, {.stages = 50, .accumulate = 2}), "50 pipeline stages"));
  EXPECT_TRUE(contains(refusal(mlp, 8, {.pipeline = {2, 0}}), "one layer or more"));
  EXPECT_TRUE(contains(refusal(mlp, 8, {.replicas = 2}, "cpu"), "several chips"));
  EXPECT_TRUE(contains(refusal(mlp, 8, {.replicas = 2}, "reference"), "several chips"));
}

}  // namespace
}  // namespace superstep
