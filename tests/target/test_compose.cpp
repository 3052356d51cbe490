// Linear operators multiplied with each other before they meet the data, and the gradients of their weights
// made once a step: against the reference evaluation of the model as it was, and by the graph and the plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "superstep/op/rows/reduction.h"
#include "superstep/target/cpu/passes/compose.h"
#include "superstep/target/cpu/passes/postpone.h"
#include "superstep/target/ports.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/transform/border.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using graph::Graph;
using graph::Node;
using target::GraphAtBatch;
using target::cpu::compose_linear;
using target::cpu::postpone_linear;

// The attention of width 64 goes over to columns; that of width 20 keeps its products, for 2 * 10 channels of
// scores are no fewer than 10.
constexpr std::int64_t wide = 64, narrow = 20;

Graph attention(std::int64_t batch, std::int64_t width) { return test::attention_network(batch, width, 7); }

std::int64_t count(const Graph& graph, std::string_view op, graph::Phase phase = graph::Phase::forward) {
  return std::ranges::count_if(graph.nodes(),
                               [&](const Node& node) { return node.op == op && node.phase == phase; });
}

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> names;
  for (graph::ValueId id : graph.inputs()) names.push_back(graph.value(id).name);
  for (graph::ValueId id : graph.states()) names.push_back(graph.value(id).name);
  for (const graph::Output& output : graph.outputs()) names.push_back(output.name);
  return names;
}

void expect_same_results(const GraphAtBatch& model, const GraphAtBatch& composed, std::int64_t batch) {
  test::Runner expected("reference", model, {.batch = batch});
  expected.run();
  for (const char* target : {"reference", "cpu"}) {
    test::Runner actual(target, composed, {.batch = batch});
    actual.run();
    for (std::size_t i = 0; i < expected.outputs.size(); ++i)
      test::expect_close(actual.outputs[i], expected.outputs[i], 2e-6, target);
  }
}

GraphAtBatch composed(const GraphAtBatch& model) {
  return [model](std::int64_t batch) { return compose_linear(model(batch)); };
}

using Body = std::function<op::Var(test::Layers&, op::Var)>;

// A model around a few layers.
GraphAtBatch around(std::int64_t channels, const Body& body) {
  return [=](std::int64_t batch) {
    Graph graph("model");
    op::Builder b(graph);
    test::Layers layers(b, 17);
    b.output("y", body(layers, b.input("x", ElementType::f32, {batch, channels, 8, 9})));
    return graph;
  };
}

TEST(Compose, AttentionGoesOverColumns) {
  const Graph model = attention(2, wide), graph = compose_linear(model);
  EXPECT_EQ(names_of(graph), names_of(model));
  // first, columns, their mixture for the scores, out, second, third
  EXPECT_EQ(count(graph, "Conv"), 6);
  std::vector<std::int64_t> inner;
  for (const Node& node : graph.nodes())
    if (node.op == "MatMul" && graph.type(node.outputs[0]).shape.rank() == 3)
      inner.push_back(graph.type(node.inputs[0]).shape[2]);
  EXPECT_EQ(inner, (std::vector<std::int64_t>{10, 25}));
  expect_same_results([](std::int64_t batch) { return attention(batch, wide); },
                      [](std::int64_t batch) { return compose_linear(attention(batch, wide)); }, 3);
}

TEST(Compose, NarrowAttentionComposesConvolutionsAlone) {
  const Graph model = attention(2, narrow), graph = compose_linear(model);
  EXPECT_EQ(count(graph, "Conv"), count(model, "Conv"));
  std::int64_t over_the_input = 0;
  for (const Node& node : graph.nodes())
    over_the_input += node.op == "Conv" && node.inputs[0] == graph.inputs()[0];
  EXPECT_EQ(over_the_input, 4);
  expect_same_results([](std::int64_t batch) { return attention(batch, narrow); },
                      [](std::int64_t batch) { return compose_linear(attention(batch, narrow)); }, 3);
}

TEST(Compose, AnyWindowOfTheFirst) {
  const std::vector<op::ConvAttributes> windows = {{.pads = {1, 0, 2, 1}},
                                                   {.strides = {2, 3}, .pads = {1, 1, 1, 1}},
                                                   {.dilations = {2, 1}},
                                                   {.auto_pad = "SAME_UPPER"}};
  for (const op::ConvAttributes& attributes : windows) {
    const GraphAtBatch model = around(2, [=](test::Layers& layers, op::Var x) {
      return layers.conv(layers.conv(x, "first", 40, 3, attributes), "second", 5, 1);
    });
    const Graph graph = compose_linear(model(2));
    EXPECT_EQ(count(graph, "Conv"), 1);
    expect_same_results(model, composed(model), 2);
  }
}

TEST(Compose, BiasesMayBeLeftOut) {
  for (const bool first_has : {false, true})
    for (const bool second_has : {false, true}) {
      const auto model = around(1, [=](test::Layers& layers, op::Var x) {
        const auto conv = [&](op::Var in, const std::string& name, std::int64_t out, std::int64_t kernel,
                              bool bias) {
          return op::conv(in, layers.parameter(name, {out, in.shape()[1], kernel, kernel}, 9),
                          bias ? layers.parameter(name + ".bias", {out}, 1) : op::Var());
        };
        return conv(conv(x, "first", 20, 3, first_has), "second", 7, 1, second_has);
      });
      EXPECT_EQ(count(compose_linear(model(2)), "Conv"), 1);
      expect_same_results(model, composed(model), 2);
    }
}

TEST(Compose, WhatSomebodyElseReadsIsStillMade) {
  const auto model = around(1, [](test::Layers& layers, op::Var x) {
    const op::Var first = layers.conv(x, "first", 20, 3);
    return op::relu(layers.conv(first, "second", 20, 1)) + first;
  });
  EXPECT_EQ(count(compose_linear(model(2)), "Conv"), 2);
  expect_same_results(model, composed(model), 2);
}

TEST(Compose, LeavesTheRestAlone) {
  const std::vector<std::pair<const char*, Body>> bodies = {
      {"an activation between",
       [](test::Layers& layers, op::Var x) {
         return layers.conv(op::relu(layers.conv(x, "first", 40, 3)), "second", 5, 1);
       }},
      {"as many terms",
       [](test::Layers& layers, op::Var x) {
         return layers.conv(layers.conv(x, "first", 17, 3), "second", 5, 1);
       }},
      {"several taps", [](test::Layers& layers,
                          op::Var x) { return layers.conv(layers.conv(x, "first", 40, 3), "second", 5, 2); }},
      {"a stride",
       [](test::Layers& layers, op::Var x) {
         return layers.conv(layers.conv(x, "first", 40, 3), "second", 5, 1, {.strides = {2, 2}});
       }},
      {"padding",
       [](test::Layers& layers, op::Var x) {
         return layers.conv(layers.conv(x, "first", 40, 3), "second", 5, 1, {.pads = {1, 1, 1, 1}});
       }},
      {"groups",
       [](test::Layers& layers, op::Var x) {
         return layers.conv(layers.conv(x, "first", 40, 3), "second", 8, 1, {.group = 4});
       }},
      {"weights that depend on the input",
       [](test::Layers& layers, op::Var x) {
         const op::Var first = layers.conv(x, "first", 40, 3);
         const op::Var scale = op::reduce_mean(x, {0, 1, 2, 3});
         return op::conv(first, layers.parameter("second", {5, 40, 1, 1}, 40) * scale);
       }},
  };
  for (const auto& [name, body] : bodies) {
    const Graph model = around(1, body)(2);
    EXPECT_EQ(compose_linear(model).node_count(), model.node_count()) << name;
  }
  for (const Graph& model : {test::pooled_network(2), test::bottleneck_network(2), test::perceptron(2)})
    EXPECT_EQ(compose_linear(model).node_count(), model.node_count());
}

// ---- training ------------------------------------------------------------------------------------------

GraphAtBatch step_of(const GraphAtBatch& model) {
  return [model](std::int64_t batch) {
    return transform::make_training_step(model(batch), {{transform::LossTerm{}}},
                                         {.kind = transform::OptimizerKind::sgd});
  };
}

void expect_same_training(const GraphAtBatch& model, const target::CompileOptions& options) {
  test::Runner expected("reference", step_of(model), {.batch = options.batch}, 0.1f);
  test::Runner actual("cpu", step_of(composed(model)), options, 0.1f);
  for (int step = 0; step < 2; ++step) {
    expected.run();
    actual.run();
    test::expect_close(actual.outputs[0], expected.outputs[0], 1e-5, "loss");
  }
  ASSERT_EQ(actual.executable->state_names().size(), expected.executable->state_names().size());
  for (const std::string& name : expected.executable->state_names())
    test::expect_close(actual.executable->state(name), expected.executable->state(name), 2e-5, name);
}

TEST(Compose, TrainsAsTheReferenceDoes) {
  for (const std::int64_t width : {narrow, wide}) {
    const auto model = [=](std::int64_t batch) { return attention(batch, width); };
    expect_same_training(model, {.batch = 6, .micro_batch = 2});
    expect_same_training(model, {.batch = 6, .micro_batch = 6, .threads = 2});
  }
  expect_same_training(around(2,
                              [](test::Layers& layers, op::Var x) {
                                const op::Var deep = layers.conv(x, "zero", 2, 3, {.pads = {1, 1, 1, 1}});
                                return layers.conv(layers.conv(deep, "first", 40, 3), "second", 5, 1);
                              }),
                       {.batch = 4, .micro_batch = 2});
}

// The gradients of the zoo's own model, which gradient descent at a rate of 1 leaves in the parameters.
TEST(Compose, GradientsOfBraggnnAreTheReferences) {
  const workload::Workload& braggnn = workload::find_workload("braggnn");
  const auto model = [&](std::int64_t batch) { return workload::build_model(braggnn, batch); };
  test::Runner expected("reference", step_of(model), {.batch = 4}, 1);
  test::Runner actual("cpu", step_of(composed(model)), {.batch = 4, .micro_batch = 2}, 1);
  std::map<std::string, Tensor> before;
  for (const std::string& name : expected.executable->state_names())
    before[name] = expected.executable->state(name);
  expected.run();
  actual.run();
  for (const std::string& name : expected.executable->state_names()) {
    const Tensor &old = before.at(name), wanted = expected.executable->state(name),
                 found = actual.executable->state(name);
    if (!is_floating(old.type())) continue;
    double largest = 1e-6;
    for (std::int64_t i = 0; i < old.element_count(); ++i)
      largest = std::max(largest, std::abs(wanted.at(i) - old.at(i)));
    for (std::int64_t i = 0; i < old.element_count(); ++i)
      ASSERT_NEAR(found.at(i) - old.at(i), wanted.at(i) - old.at(i),
                  1e-4 * largest + 1e-7 * std::abs(old.at(i)))
          << name << " at " << i;
  }
}

TEST(Compose, BeforeReducedPrecision) {
  const auto reduced = [](bool composed) {
    return [composed](std::int64_t batch) {
      const Graph model = attention(batch, wide);
      return transform::autocast(composed ? compose_linear(model) : model, ElementType::bf16);
    };
  };
  test::Runner exact("reference", [](std::int64_t batch) { return attention(batch, wide); }, {.batch = 4});
  exact.run();
  for (const bool composes : {false, true}) {
    test::Runner cpu("cpu", reduced(composes), {.batch = 4});
    cpu.run();
    test::expect_close(cpu.outputs[0], exact.outputs[0], 2e-2, composes ? "composed" : "as it is");
  }
}

// ---- work on sums over the batch -------------------------------------------------------------------------

Graph prepared(const GraphAtBatch& model) { return target::prepare_graph(step_of(model)(4)); }

std::int64_t border_elements(const Graph& graph) {
  const std::vector<bool> crosses = transform::gradient_values(graph);
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < crosses.size(); ++i)
    if (crosses[i]) elements += graph.values()[i].type.shape.element_count();
  return elements;
}

TEST(Postpone, ProductsOfSmallSumsBelongToTheUpdate) {
  const Graph before = prepared([](std::int64_t batch) { return compose_linear(attention(batch, wide)); });
  const Graph after = postpone_linear(before);
  EXPECT_EQ(count(before, "Gemm", graph::Phase::update), 0);
  // Two for each product of weights and biases there is: six, of the weights of out and those of the scores
  // one.
  EXPECT_EQ(count(after, "Gemm", graph::Phase::update), 16);
  // What is left multiplies samples: three dense layers, each by its weights and by its input.
  EXPECT_EQ(count(after, "Gemm", graph::Phase::backward), 6);
  // The gradients of theta, phi, g, out and first are 4 * 64 * 32 + 64 * 9 elements and their biases'.
  EXPECT_LT(border_elements(after) + 7000, border_elements(before));
  EXPECT_TRUE(transform::splittable(after).has_value());
}

TEST(Postpone, OtherStepsStayAsTheyAre) {
  const std::vector<GraphAtBatch> models = {
      test::pooled_network, test::bottleneck_network, test::perceptron,
      [](std::int64_t batch) { return attention(batch, wide); },
      // Weights that are read twice: their gradient is a sum of two, each as large.
      around(4, [](test::Layers& layers, op::Var x) {
        const op::Var w = layers.parameter("w", {4, 4, 1, 1}, 4);
        return op::conv(op::relu(op::conv(x, w)), w);
      })};
  for (const GraphAtBatch& model : models) {
    const Graph before = prepared(model), after = postpone_linear(before);
    EXPECT_EQ(border_elements(after), border_elements(before));
    for (const char* op : {"MatMul", "Add", "Transpose", "Reshape"})
      EXPECT_EQ(count(after, op, graph::Phase::backward), count(before, op, graph::Phase::backward)) << op;
  }
}

TEST(Postpone, LeavesGraphsWithoutUpdates) {
  const Graph graph = attention(2, wide);
  EXPECT_EQ(postpone_linear(graph).node_count(), graph.node_count());
}

}  // namespace
}  // namespace superstep
