// Training steps in which factors and sums of large values are those of small ones: by the graph, and against
// the reference evaluation.
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/op/elementwise/cast.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/target/cpu/passes/linear_sums.h"
#include "superstep/target/ports.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/training/training_step.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using graph::Graph;
using op::Var;
using target::GraphAtBatch;

constexpr std::int64_t pixels = 640, components = 20;

// Components of pixels whose mean is learnt too, and back: what is taken off in front, factors, and weights
// that are read both ways.
Graph compression(std::int64_t batch) {
  Graph graph("compression");
  op::Builder b(graph);
  test::Layers layers(b, 5);
  const Var x = b.input("x", ElementType::f32, {batch, pixels});
  const Var basis = layers.parameter("basis", {pixels, components}, pixels),
            mean = layers.parameter("mean", {pixels}, 1);
  const Var code = op::matmul((x - mean) * 0.3, basis) * 4.0;
  b.output("y", op::matmul(code, op::transpose(basis, {1, 0})) * 0.7 + mean);
  return graph;
}

GraphAtBatch training(const std::function<Graph(std::int64_t)>& model, bool narrow = false) {
  return [=](std::int64_t batch) {
    const Graph at = model(batch);
    return transform::make_training_step(narrow ? transform::autocast(at, ElementType::bf16) : at,
                                         {{transform::LossTerm{}}},
                                         {.kind = transform::OptimizerKind::sgd, .momentum = 0.9});
  };
}

Graph prepared(const GraphAtBatch& model, std::int64_t batch) { return target::prepare_graph(model(batch)); }

// Nodes of the backward pass whose results are as large as the batch's pixels.
std::ptrdiff_t large(const Graph& graph, std::string_view op, std::int64_t batch) {
  return std::ranges::count_if(graph.nodes(), [&](const graph::Node& node) {
    return node.op == op && node.phase == graph::Phase::backward &&
           graph.type(node.outputs[0]).shape.element_count() == batch * pixels;
  });
}

TEST(LinearSums, FactorsGoToWhatIsSmall) {
  const Graph before = prepared(training(compression), 8);
  const Graph after = target::cpu::scale_behind_sums(before);
  EXPECT_GT(large(before, "Mul", 8), 2);
  // What comes out of the first product's gradient is its own, which the sum over it reads.
  EXPECT_EQ(large(after, "Mul", 8) + large(after, "Neg", 8) + large(after, "Add", 8), 0);
}

TEST(LinearSums, AFactorThatOthersReadStays) {
  const auto read_twice = [](std::int64_t batch) {
    Graph graph = compression(batch);
    return graph;
  };
  Graph before = prepared(training(read_twice), 8);
  std::ptrdiff_t shown = 0;
  for (const graph::Node& node : before.nodes())
    if (node.op == "Mul" && node.phase == graph::Phase::backward &&
        before.type(node.outputs[0]).shape.element_count() == 8 * pixels)
      before.add_output("shown" + std::to_string(shown++), node.outputs[0]);
  const Graph after = target::cpu::scale_behind_sums(before);
  EXPECT_EQ(large(after, "Mul", 8), large(before, "Mul", 8));
}

TEST(LinearSums, AFactorThatWouldLeaveTheRangeStays) {
  const auto with = [](double factor) {
    return prepared(training([=](std::int64_t batch) {
                      Graph graph("far");
                      op::Builder b(graph);
                      test::Layers layers(b, 5);
                      const Var x = b.input("x", ElementType::f32, {batch, pixels});
                      const Var w = layers.parameter("w", {pixels, 2}, pixels);
                      b.output("y", op::matmul(x * factor, w));
                      return graph;
                    }),
                    8);
  };
  const auto muls = [](const Graph& graph) {
    return std::ranges::count_if(graph.nodes(), [&](const graph::Node& node) {
      return node.op == "Mul" && graph.type(node.outputs[0]).shape.element_count() == 8 * pixels;
    });
  };
  EXPECT_EQ(muls(target::cpu::scale_behind_sums(with(0.5))), 0);
  EXPECT_EQ(muls(target::cpu::scale_behind_sums(with(1e25))), 1);
}

TEST(LinearSums, TheSumOfAProductsRowsIsAProductOfASum) {
  const Graph before = prepared(training(compression), 8);
  const Graph after = target::cpu::sum_before_products(before);
  const auto products = [](const Graph& graph, std::int64_t rows) {
    return std::ranges::count_if(graph.nodes(), [&](const graph::Node& node) {
      return node.op == "Gemm" && graph.type(node.outputs[0]).shape == Shape{rows, pixels};
    });
  };
  EXPECT_EQ(products(before, 8), 1);
  EXPECT_EQ(products(before, 1), 0);
  EXPECT_EQ(products(after, 8), 0);
  EXPECT_EQ(products(after, 1), 1);
}

TEST(LinearSums, ModelsThatAreServedStayAsTheyAre) {
  const Graph graph = compression(8);
  EXPECT_EQ(target::cpu::scale_behind_sums(graph).node_count(), graph.node_count());
  EXPECT_EQ(target::cpu::sum_before_products(graph).node_count(), graph.node_count());
}

TEST(LinearSums, StepAsTheReferenceDoes) {
  for (const bool narrow : {false, true})
    for (const std::int64_t micro_batch : {8, 2})
      for (const int threads : {1, 2}) {
        const GraphAtBatch model = training(compression, narrow);
        test::Runner cpu("cpu", model, {.batch = 8, .micro_batch = micro_batch, .threads = threads});
        test::Runner reference("reference", training(compression), {.batch = 8});
        for (int i = 0; i < 3; ++i) {
          cpu.run();
          reference.run();
          test::expect_close(cpu.outputs[0], reference.outputs[0], narrow ? 2e-2 : 1e-5, "loss");
        }
        for (const std::string& name : cpu.executable->state_names())
          test::expect_close(cpu.executable->state(name), reference.executable->state(name),
                             narrow ? 2e-2 : 1e-5, name);
      }
}

// The two terms of such a gradient: the second product adds the first one's result as it is stored.
TEST(LinearSums, NarrowTermsAreAddedByTheLastProduct) {
  test::Runner cpu("cpu", training(compression, true), {.batch = 8, .micro_batch = 8});
  EXPECT_EQ(cpu.count("Cast+Cast+Add"), 0u);
  EXPECT_EQ(cpu.count("Gemm+Cast+Cast+Add"), 1u);
}

// In bf16 too the gradient of weights that are read both ways is made in their own order, and no step turns
// it round.
TEST(LinearSums, NarrowProductsWriteTheParametersOrder) {
  test::Runner cpu("cpu", training(compression, true), {.batch = 8, .micro_batch = 8});
  for (const target::PlanStep& step : cpu.executable->summary().steps)
    EXPECT_EQ(step.kernel.find("transposition"), std::string::npos) << step.op << ": " << step.kernel;
}

}  // namespace
}  // namespace superstep
