// Values between a batch normalisation and its readers that each reader makes again, and sums that run with
// what makes them: against the reference evaluation, and by the graph and the plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "superstep/op/rows/normalization.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/target/cpu/passes/decompose.h"
#include "superstep/target/cpu/passes/remake.h"
#include "superstep/target/ports.h"
#include "superstep/target/target.h"
#include "superstep/transform/training/training_step.h"
#include "tests/target/models.h"

namespace superstep {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using target::Executable;

op::Var normalised(op::Builder& b, op::Var x, const std::string& name) {
  const op::NameScope scope(b, name);
  const Shape channels{x.shape()[1]};
  const auto state = [&](const char* part, double value) {
    Tensor tensor(ElementType::f32, channels);
    for (std::int64_t i = 0; i < channels[0]; ++i) tensor.set(i, value + 0.1 * static_cast<double>(i % 3));
    return b.state(name + part, tensor);
  };
  return op::batch_normalization(x, state(".scale", 1), state(".bias", -0.1), state(".mean", 0),
                                 state(".variance", 1));
}

// Expansion, depthwise convolution, squeeze and excitation, projection, and the sum with what came in.
op::Var block(op::Builder& b, test::Layers& layers, op::Var x, const std::string& name,
              op::Var (*activated)(op::Var)) {
  const std::int64_t width = x.shape()[1], inner = 5 * width;
  op::Var y = activated(normalised(b, layers.conv(x, name + ".expand", inner, 1), name + ".norm1"));
  y = layers.conv(y, name + ".depthwise", inner, 3, {.pads = {1, 1, 1, 1}, .group = inner});
  y = activated(normalised(b, y, name + ".norm2"));
  const op::Var code = op::relu(layers.conv(op::global_average_pool(y), name + ".reduce", 3, 1));
  y = y * op::sigmoid(layers.conv(code, name + ".excite", inner, 1));
  return normalised(b, layers.conv(y, name + ".project", width, 1), name + ".norm3") + x;
}

op::Var silu(op::Var x) { return x * op::sigmoid(x); }

Graph excited_network(std::int64_t batch) {
  Graph graph("excited");
  op::Builder b(graph);
  test::Layers layers(b, 23);
  const op::Var x = b.input("x", ElementType::f32, {batch, 8, 15, 16});
  op::Var y = block(b, layers, x, "swish", silu);
  y = block(b, layers, y, "hard", [](op::Var v) { return op::hard_swish(v); });
  y = block(b, layers, y, "rectified", [](op::Var v) { return op::relu(v); });
  b.output("y", layers.dense(op::flatten(op::global_average_pool(y)), "dense", 3));
  return graph;
}

Graph training_step(std::int64_t batch) {
  return transform::make_training_step(excited_network(batch), {{transform::LossTerm{}}},
                                       {.kind = transform::OptimizerKind::sgd});
}

Graph prepared(const Graph& graph) { return target::prepare_graph(target::cpu::decompose(graph)); }

int count(const Graph& graph, std::string_view op) {
  return static_cast<int>(
      std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op == op; }));
}

std::vector<Tensor> inputs_of(const Executable& executable) {
  std::vector<Tensor> inputs;
  std::uint64_t seed = 5;
  for (const auto& port : executable.inputs())
    inputs.push_back(port.type.shape.rank() == 0
                         ? Tensor::scalar(0.01f)
                         : test::random_tensor(port.type.element, port.type.shape, seed++));
  return inputs;
}

double stepped(Executable& executable, int steps) {
  const std::vector<Tensor> inputs = inputs_of(executable);
  std::vector<Tensor> outputs;
  for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  for (int i = 0; i < steps; ++i) executable.run(inputs, outputs);
  return outputs[0].at(0);
}

TEST(Remake, SumsReadChainsOfTheirOwn) {
  const Graph before = prepared(training_step(4)), after = target::cpu::remake_between_passes(before);
  EXPECT_GT(count(after, "Sigmoid"), count(before, "Sigmoid"));
  EXPECT_EQ(count(after, "Conv"), count(before, "Conv"));
  EXPECT_EQ(count(after, "ConvTranspose"), count(before, "ConvTranspose"));
  const std::vector<int> uses = after.use_counts();
  int chains = 0;
  for (const Node& node : after.nodes()) {
    if (node.op != "superstep.ChannelSums") continue;
    const graph::Value& value = after.value(node.inputs[0]);
    const Node& made = after.node(value.producer);
    // The rectifier behind a convolution alone is that one's epilogue, and stays.
    if (uses[node.inputs[0].index()] == 1 && made.op != "ConvTranspose") ++chains;
  }
  EXPECT_EQ(chains, 5);
}

// Where nothing is normalised in training there is nothing to do.
TEST(Remake, OtherGraphsStayAsTheyAre) {
  for (const Graph& graph : {excited_network(2), transform::make_training_step(
                                                     test::bottleneck_network(2), {{transform::LossTerm{}}},
                                                     {.kind = transform::OptimizerKind::sgd})}) {
    const Graph before = prepared(graph);
    EXPECT_EQ(target::cpu::remake_between_passes(before).node_count(), before.node_count());
  }
}

TEST(Remake, KnowsSumsOverPositions) {
  Graph graph("sums");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {2, 3, 4, 5});
  const auto over = [&](const op::Axes& axes) {
    const op::Var sum = op::reduce_sum(x, axes);
    return target::cpu::sums_over_positions(graph, graph.node(graph.value(sum.id()).producer));
  };
  EXPECT_TRUE(over({2, 3}));
  EXPECT_TRUE(over({-1, 2}));
  EXPECT_FALSE(over({3}));
  EXPECT_FALSE(over({1, 2, 3}));
  EXPECT_FALSE(over({0, 2}));
}

TEST(Remake, TrainsAsTheReferenceDoes) {
  const target::GraphAtBatch step = training_step;
  const auto cpu = target::find_target("cpu").compile(step, {.batch = 8});
  const auto reference = target::find_target("reference").compile(step, {.batch = 8});
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(stepped(*cpu, 1), stepped(*reference, 1), 1e-5);
  for (const std::string& name : cpu->state_names()) {
    const Tensor actual = cpu->state(name), expected = reference->state(name);
    for (std::int64_t i = 0; i < actual.element_count(); ++i)
      ASSERT_NEAR(actual.at(i), expected.at(i), 2e-5) << name << " at " << i;
  }
}

// Sums made in parts by several threads have the bits of one thread's.
TEST(Remake, GivesTheSameBitsWhateverTheThreads) {
  std::vector<std::vector<Tensor>> states;
  for (int threads : {1, 2, 3}) {
    const auto cpu = target::find_target("cpu").compile(training_step, {.batch = 8, .threads = threads});
    stepped(*cpu, 3);
    states.emplace_back();
    for (const std::string& name : cpu->state_names()) states.back().push_back(cpu->state(name));
  }
  for (std::size_t other : {1u, 2u})
    for (std::size_t i = 0; i < states[0].size(); ++i)
      EXPECT_EQ(std::memcmp(states[0][i].bytes(), states[other][i].bytes(), states[0][i].byte_count()), 0);
}

TEST(Remake, SumsRunWithWhatMakesThem) {
  const auto cpu = target::find_target("cpu").compile(training_step, {.batch = 8});
  const auto runs_with = [&](std::string_view sum) {
    int steps = 0;
    for (const target::PlanStep& step : cpu->summary().steps)
      steps += step.op.ends_with(sum) && step.op.size() > sum.size();
    return steps;
  };
  EXPECT_EQ(runs_with("superstep.ChannelSums"), 5);
  EXPECT_EQ(runs_with("ReduceMean"), 4);  // of each excitation, and of the images at the end
  EXPECT_EQ(runs_with("ReduceSum"), 3);
  for (const target::PlanStep& step : cpu->summary().steps)
    EXPECT_NE(step.kernel, "reference evaluation") << step.op;
}

TEST(Remake, AMemoryLimitLeavesTheResultsAsTheyAre) {
  const auto free = target::find_target("cpu").compile(training_step, {.batch = 8});
  const std::size_t limit = free->summary().plan_bytes * 9 / 10;
  const auto small = target::find_target("cpu").compile(training_step, {.batch = 8, .memory_limit = limit});
  EXPECT_LE(small->summary().plan_bytes, limit);
  EXPECT_NEAR(stepped(*small, 2), stepped(*free, 2), 1e-5);
}

}  // namespace
}  // namespace superstep
