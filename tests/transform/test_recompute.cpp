// Values computed again in the backward pass: the same results, less to keep.
#include <set>

#include "superstep/op/elementwise/activation.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/softmax.h"
#include "superstep/transform/training/recompute.h"
#include "superstep/transform/training/training_step.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

// A product with its activation, attention of a sample's rows among themselves, a product.
graph::Graph model(std::int64_t batch) {
  graph::Graph graph("model");
  op::Builder b(graph);
  const auto parameter = [&](const char* name, const Shape& shape, std::uint64_t seed) {
    return b.state(name, random_tensor(ElementType::f32, shape, seed));
  };
  const op::Var x = b.input("x", ElementType::f32, {batch, 12, 4});
  const op::Var h = op::tanh(op::matmul(x, parameter("first", {4, 6}, 1)));
  const op::Var scores = op::softmax(op::matmul(h, op::transpose(h, {0, 2, 1})), -1);
  b.output("y", op::matmul(op::matmul(scores, h), parameter("second", {6, 2}, 2)));
  return graph;
}

graph::Graph training_step(std::int64_t batch) {
  return make_training_step(model(batch), {{LossTerm{.kind = LossKind::mse}}}, {.kind = OptimizerKind::adam});
}

std::vector<Tensor> inputs_of(const graph::Graph& graph) {
  std::vector<Tensor> inputs;
  std::uint64_t seed = 9;
  for (graph::ValueId id : graph.inputs()) {
    const graph::ValueType& type = graph.type(id);
    inputs.push_back(type.shape.rank() == 0 ? Tensor::scalar(0.01f)
                                            : random_tensor(type.element, type.shape, seed++));
  }
  return inputs;
}

// Elements that differ between two runs, outputs and new states together.
std::int64_t differences(const graph::Graph& a, const graph::Graph& b) {
  const auto left = op::evaluate(a, inputs_of(a)), right = op::evaluate(b, inputs_of(b));
  std::int64_t count = 0;
  const auto compare = [&](const Tensor& x, const Tensor& y) {
    for (std::int64_t i = 0; i < x.element_count(); ++i) count += x.at(i) != y.at(i);
  };
  for (std::size_t i = 0; i < left.outputs.size(); ++i) compare(left.outputs[i], right.outputs[i]);
  EXPECT_EQ(a.updates().size(), b.updates().size());
  return count;
}

// Forward values that nodes of the backward pass read.
std::size_t kept_values(const graph::Graph& graph) {
  std::set<graph::ValueId> kept;
  for (const graph::Node& node : graph.nodes())
    if (node.phase == graph::Phase::backward)
      for (graph::ValueId input : node.inputs)
        if (input.valid() && graph.value(input).kind == graph::ValueKind::computed &&
            graph.node(graph.value(input).producer).phase == graph::Phase::forward)
          kept.insert(input);
  return kept.size();
}

TEST(Recompute, KeepsLessAndGivesTheSameBits) {
  const graph::Graph step = training_step(3);
  const Recomputed result = recompute(step, {.extra_share = 1});
  verified(result.graph);
  EXPECT_GE(result.values, 2u);
  EXPECT_GT(result.bytes_freed, 0);
  EXPECT_LT(kept_values(result.graph), kept_values(step));
  EXPECT_GT(result.graph.node_count(), step.node_count());
  EXPECT_EQ(differences(step, result.graph), 0);
}

TEST(Recompute, StaysWithinItsBudget) {
  const graph::Graph step = training_step(3);
  const double all = op::cost(step).flops;
  double freed = 0;
  for (const double share : {0.01, 0.05, 0.2, 0.5}) {
    const Recomputed result = recompute(step, {.extra_share = share});
    EXPECT_LE(result.extra_flops, share * all);
    EXPECT_NEAR(op::cost(result.graph).flops, all + result.extra_flops, 1e-6 * all);
    EXPECT_GE(result.bytes_freed, freed);
    freed = result.bytes_freed;
  }
}

TEST(Recompute, TakesTheCheapestFirst) {
  // The product of h with itself costs 6 multiply-adds an element, its softmax less.
  const Recomputed little = recompute(training_step(3), {.extra_share = 0.05});
  ASSERT_GE(little.values, 1u);
  EXPECT_GE(count_of(little.graph, "Softmax"), 1);
}

TEST(Recompute, KeepsWhatItIsTold) {
  const graph::Graph step = training_step(3);
  const auto softmaxes = [](const graph::Graph& graph) { return count_of(graph, "Softmax"); };
  ASSERT_EQ(softmaxes(recompute(step, {.extra_share = 1}).graph), 2);
  std::vector<graph::ValueId> weights;
  for (const graph::Node& node : step.nodes())
    if (node.op == "Softmax") weights.push_back(node.outputs[0]);
  const Recomputed kept = recompute(step, {.extra_share = 1, .keep = weights});
  EXPECT_EQ(softmaxes(kept.graph), 1);
  EXPECT_GT(kept.values, 0u);
  EXPECT_EQ(differences(step, kept.graph), 0);
}

// A chain of layers: computed again at once in the middle of the step, or a stretch at a time.
TEST(Recompute, ReachesNoFurtherBackThanItsStretch) {
  const auto chain = [](std::int64_t batch) {
    graph::Graph graph("chain");
    op::Builder b(graph);
    op::Var y = b.input("x", ElementType::f32, {batch, 6});
    for (std::uint64_t layer = 0; layer < 8; ++layer)
      y = op::tanh(op::matmul(
          y, b.state("w" + std::to_string(layer), random_tensor(ElementType::f32, {6, 6}, layer + 1))));
    b.output("y", y);
    return graph;
  };
  const graph::Graph step = make_training_step(chain(5), {{LossTerm{.kind = LossKind::mse}}}, {});
  const Recomputed all = recompute(step, {.extra_share = 1}),
                   parts = recompute(step, {.extra_share = 1, .stretches = 4});
  verified(parts.graph);
  EXPECT_EQ(differences(step, parts.graph), 0);
  EXPECT_GT(parts.values, 0u);
  EXPECT_GT(kept_values(parts.graph), kept_values(all.graph));
  EXPECT_LT(kept_values(parts.graph), kept_values(step));
  // Nodes that run again one after another before a gradient is made.
  const auto longest_run = [](const graph::Graph& graph) {
    int longest = 0, run = 0;
    for (const graph::Node& node : graph.nodes()) {
      run = node.name.starts_with("again(") ? run + 1 : 0;
      longest = std::max(longest, run);
    }
    return longest;
  };
  EXPECT_LE(2 * longest_run(parts.graph), longest_run(all.graph));
}

TEST(Recompute, WithoutABudgetNothingChanges) {
  const graph::Graph step = training_step(3);
  const Recomputed result = recompute(step, {.extra_share = 0});
  EXPECT_EQ(result.values, 0u);
  EXPECT_EQ(body_of(result.graph), body_of(step));
}

TEST(Recompute, LeavesInferenceAlone) {
  const graph::Graph graph = model(2);
  EXPECT_EQ(body_of(recompute(graph, {.extra_share = 1}).graph), body_of(graph));
}

TEST(Recompute, MarksWhatItAddsAsBackward) {
  const graph::Graph step = training_step(2);
  const Recomputed result = recompute(step, {.extra_share = 1});
  std::size_t again = 0;
  for (const graph::Node& node : result.graph.nodes())
    if (node.name.starts_with("again(")) {
      ++again;
      EXPECT_EQ(node.phase, graph::Phase::backward) << node.name;
    }
  EXPECT_GT(again, 0u);
}

}  // namespace
}  // namespace superstep::transform
