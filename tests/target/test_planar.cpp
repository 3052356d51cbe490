// Convolutions of few channels over planes, what joins them, and outputs that steps write where the caller
// wants them: by the plan, and against the reference evaluation.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "superstep/op/elementwise/unary.h"
#include "superstep/op/window/pooling.h"
#include "superstep/target/cpu/passes/convolution_borders.h"
#include "superstep/target/cpu/passes/linear_sums.h"
#include "superstep/target/cpu/plan/planar.h"
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

// What stands around a convolution of few channels.
struct Network {
  std::int64_t channels = 1, height = 40, width = 48;
  std::function<void(op::Builder&, test::Layers&, Var)> body;

  Graph operator()(std::int64_t batch) const {
    Graph graph("planes");
    op::Builder b(graph);
    test::Layers layers(b, 23);
    body(b, layers, b.input("x", ElementType::f32, {batch, channels, height, width}));
    return graph;
  }
};

// Both gradients of a filter and their length.
void edges(op::Builder& b, test::Layers& layers, Var x) {
  const Var taps = layers.parameter("taps", {2, 1, 3, 3}, 9);
  const auto both = op::split(op::conv(x * 0.0625, taps, {}, {.pads = {1, 1, 1, 1}}) * 16.0, 1, {1, 1});
  b.output("gx", both[0]);
  b.output("gy", both[1]);
  b.output("length", op::sqrt(both[0] * both[0] + both[1] * both[1] + 1e-12));
}

void chain(op::Builder& b, test::Layers& layers, Var x) {
  const Var first = op::relu(layers.conv(x, "first", 4, 5, {.pads = {2, 2, 2, 2}}));
  const Var second = layers.conv(first, "second", 4, 3, {.pads = {1, 1, 1, 1}}) + first;
  b.output("y", layers.conv(op::tanh(second), "third", 3, 3, {.dilations = {2, 2}}));
}

std::vector<std::string> kernels_of(const target::Executable& executable) {
  std::vector<std::string> kernels;
  for (const target::PlanStep& step : executable.summary().steps) kernels.push_back(step.kernel);
  return kernels;
}

std::size_t count_planar(const target::Executable& executable) {
  std::size_t count = 0;
  for (const std::string& kernel : kernels_of(executable)) count += kernel.starts_with("planar convolution");
  return count;
}

void expect_as_reference(const GraphAtBatch& model, const target::CompileOptions& options,
                         double tolerance = 4e-6) {
  test::Runner expected("reference", model, {.batch = options.batch}), actual("cpu", model, options);
  expected.run();
  actual.run();
  for (std::size_t i = 0; i < expected.outputs.size(); ++i)
    test::expect_close(actual.outputs[i], expected.outputs[i], tolerance,
                       expected.executable->outputs()[i].name);
}

TEST(PlanarPlan, EdgesAreOnePass) {
  const Network network{.height = 300, .width = 400, .body = edges};
  test::Runner runner("cpu", network, {.batch = 2});
  const auto kernels = kernels_of(*runner.executable);
  ASSERT_EQ(kernels.size(), 1u) << ::testing::PrintToString(kernels);
  EXPECT_TRUE(kernels[0].starts_with("planar convolution, 1 to 2 channels, 3 x 3 taps; vector program"));
  expect_as_reference(network, {.batch = 2});
}

// Small images stay in the cache: the length is a step of its own, and nothing is copied.
TEST(PlanarPlan, SmallEdgesAreTwoSteps) {
  const Network network{.body = edges};
  test::Runner runner("cpu", network, {.batch = 1});
  EXPECT_EQ(kernels_of(*runner.executable).size(), 2u);
  EXPECT_EQ(runner.count("copy"), 0u);
}

TEST(PlanarPlan, AgreesWithTheReferenceAtAnyBatchAndNumberOfThreads) {
  const Network networks[] = {{.height = 90, .width = 700, .body = edges},
                              {.channels = 3, .height = 33, .width = 45, .body = chain}};
  for (const Network& network : networks)
    for (const target::CompileOptions& options : {target::CompileOptions{.batch = 1},
                                                  {.batch = 1, .threads = 3},
                                                  {.batch = 6, .micro_batch = 2},
                                                  {.batch = 6, .micro_batch = 3, .threads = 8},
                                                  {.batch = 5, .micro_batch = 5, .threads = 64}})
      expect_as_reference(network, options);
}

// The comparison would notice a filter that is another one.
TEST(PlanarPlan, AnotherFilterIsNoticed) {
  const Network network{.body = edges};
  test::Runner expected("reference", network, {.batch = 1}), actual("cpu", network, {.batch = 1});
  Tensor taps = actual.executable->state("taps").clone();
  taps.set(4, taps.at(4) + 1e-3);
  actual.executable->set_state("taps", taps);
  expected.run();
  actual.run();
  double largest = 0;
  for (std::int64_t i = 0; i < expected.outputs[0].element_count(); ++i)
    largest = std::max(largest, std::abs(expected.outputs[0].at(i) - actual.outputs[0].at(i)));
  EXPECT_GT(largest, 5e-4);
}

TEST(PlanarPlan, InBf16) {
  for (const Network& network : {Network{.height = 90, .width = 700, .body = edges},
                                 Network{.channels = 3, .height = 33, .width = 45, .body = chain}}) {
    const GraphAtBatch narrow = [network](std::int64_t batch) {
      return transform::autocast(network(batch), ElementType::bf16);
    };
    test::Runner runner("cpu", narrow, {.batch = 2});
    EXPECT_GT(count_planar(*runner.executable), 0u);
    expect_as_reference(narrow, {.batch = 2}, 0.02);
  }
}

TEST(PlanarPlan, AChainStaysInPlanes) {
  const Network network{.channels = 3, .body = chain};
  test::Runner runner("cpu", network, {.batch = 2});
  EXPECT_EQ(count_planar(*runner.executable), 3u);
  EXPECT_EQ(runner.count("copy"), 0u);
}

// Where others want channels innermost, a convolution goes with them.
// Both gradients alone, which a filter learns from examples.
void both_edges(op::Builder& b, test::Layers& layers, Var x) {
  const Var taps = layers.parameter("taps", {2, 1, 3, 3}, 9);
  const auto both = op::split(op::conv(x * 0.0625, taps, {}, {.pads = {1, 1, 1, 1}}) * 16.0, 1, {1, 1});
  b.output("gx", both[0]);
  b.output("gy", both[1]);
}

GraphAtBatch learning(const Network& network, std::vector<std::string> outputs) {
  return [=](std::int64_t batch) {
    std::vector<transform::LossTerm> terms;
    for (const std::string& output : outputs)
      terms.push_back({.output = output, .target = output + "_target", .weight = 0.5});
    return transform::make_training_step(network(batch), {terms},
                                         {.kind = transform::OptimizerKind::sgd, .momentum = 0.9});
  };
}

// A pass over the image makes both errors, another one both gradients of the taps; nothing else reads and
// writes images, sums of squares read one each.
TEST(PlanarTraining, IsTwoPassesOverTheImage) {
  const Network network{.height = 70, .width = 90, .body = both_edges};
  test::Runner runner("cpu", learning(network, {"gx", "gy"}), {.batch = 2, .micro_batch = 2});
  const std::vector<std::string> kernels = kernels_of(*runner.executable);
  EXPECT_EQ(count_planar(*runner.executable), 1u);
  EXPECT_EQ(std::ranges::count(kernels, "planar weight gradient, 1 to 2 channels, 3 x 3 taps"), 1);
  std::vector<std::string> large;
  for (const target::PlanStep& step : runner.executable->summary().steps)
    if (step.bytes >= 2 * 2 * 70 * 90 * sizeof(float)) large.push_back(step.op + ": " + step.kernel);
  EXPECT_EQ(large.size(), 2u) << fmt::format("{}", fmt::join(large, "; "));
}

TEST(PlanarTraining, StepsAsTheReferenceDoes) {
  const Network pair{.height = 40, .width = 50, .body = both_edges};
  const Network several{
      .channels = 3, .height = 20, .width = 37, .body = [](op::Builder& b, test::Layers& layers, Var x) {
        b.output("gx", op::relu(layers.conv(x, "first", 4, 5, {.pads = {2, 1, 2, 3}})));
        b.output("gy", layers.conv(x, "second", 2, 3, {.dilations = {2, 2}}));
      }};
  for (const Network& network : {pair, several})
    for (const std::int64_t micro_batch : {4, 2, 1})
      for (const int threads : {1, 2}) {
        const GraphAtBatch model = learning(network, {"gx", "gy"});
        test::Runner cpu("cpu", model, {.batch = 4, .micro_batch = micro_batch, .threads = threads});
        test::Runner reference("reference", model, {.batch = 4});
        EXPECT_GT(cpu.count("superstep.ConvWeightGradient") +
                      cpu.count("superstep.ConvWeightGradient; superstep.ConvWeightGradient"),
                  0u);
        for (int i = 0; i < 3; ++i) {
          cpu.run();
          reference.run();
          test::expect_close(cpu.outputs[0], reference.outputs[0], 1e-5, "loss");
        }
        for (const std::string& name : cpu.executable->state_names())
          test::expect_close(cpu.executable->state(name), reference.executable->state(name), 1e-5, name);
      }
}

TEST(PlanarPlan, GoesWithItsNeighbours) {
  const auto planar = [](const std::function<void(op::Builder&, test::Layers&, Var)>& body) {
    test::Runner runner("cpu", Network{.channels = 2, .body = body}, {.batch = 2});
    runner.run();
    return count_planar(*runner.executable);
  };
  EXPECT_EQ(planar([](op::Builder& b, test::Layers& layers, Var x) {
              const Var few = op::relu(layers.conv(x, "few", 4, 3));
              b.output("y", layers.conv(few, "many", 32, 3));
            }),
            0u);
  EXPECT_EQ(
      planar([](op::Builder& b, test::Layers& layers, Var x) {
        b.output("y", op::max_pool(op::relu(layers.conv(x, "few", 4, 3)), {.kernel_shape = {2, 2}}).values);
      }),
      0u);
  EXPECT_EQ(planar([](op::Builder& b, test::Layers& layers, Var x) {
              b.output("y", op::relu(layers.conv(x, "few", 4, 3)));
              b.output("z", layers.conv(x, "many", 32, 3));
            }),
            1u);  // which x is read in any order
}

TEST(ConvolutionBorders, AFactorGoesIntoTheWeights) {
  const auto products = [](const std::function<void(op::Builder&, test::Layers&, Var)>& body) {
    const Graph graph = target::cpu::scale_weights(Network{.body = body}(2));
    return std::ranges::count_if(graph.nodes(), [&](const graph::Node& node) {
      return node.op == "Mul" && graph.type(node.outputs[0]).shape.element_count() > 100;
    });
  };
  EXPECT_EQ(products([](op::Builder& b, test::Layers& layers, Var x) {
              b.output("y", layers.conv(x * 0.1, "conv", 3, 3));
            }),
            0);
  // Of an output, too; by no constant; so large that products would overflow.
  EXPECT_EQ(products([](op::Builder& b, test::Layers& layers, Var x) {
              const Var less = x * 0.1;
              b.output("y", layers.conv(less, "conv", 3, 3));
              b.output("less", less);
              b.output("both", op::relu(layers.conv(x * x, "other", 3, 3)));
              b.output("large", layers.conv(x * 1e20, "third", 3, 3));
            }),
            3);
  const Network scaled{.body = [](op::Builder& b, test::Layers& layers, Var x) {
    b.output("y", layers.conv(x * 0.1, "conv", 3, 3) * 7.0);
  }};
  expect_as_reference(scaled, {.batch = 2});
}

TEST(ConvolutionBorders, ACotangentsFactorsGoBehindTheGradient) {
  const auto prepared = [](double factor) {
    const Network network{
        .height = 70, .width = 90, .body = [=](op::Builder& b, test::Layers& layers, Var x) {
          b.output("gx", layers.conv(x, "conv", 2, 3) * factor);
        }};
    return target::prepare_graph(learning(network, {"gx"})(2));
  };
  const auto products = [](const Graph& graph) {
    return std::ranges::count_if(graph.nodes(), [&](const graph::Node& node) {
      return node.phase == graph::Phase::backward && (node.op == "Mul" || node.op == "Add") &&
             graph.type(node.outputs[0]).shape.element_count() > 1000;
    });
  };
  EXPECT_GT(products(prepared(7.0)), 1);
  // The bias's gradient reads them too.
  EXPECT_EQ(products(target::cpu::scale_behind_sums(prepared(7.0))), 0);
  EXPECT_GT(products(target::cpu::scale_behind_sums(prepared(1e25))), 0);
}

TEST(ConvolutionBorders, AJoinedCotangentIsAGradientForEachPart) {
  const auto gradients = [](std::int64_t width) {
    const Network network{.height = 70, .width = width, .body = both_edges};
    const Graph graph = target::cpu::split_weight_gradients(
        target::cpu::scale_behind_sums(target::prepare_graph(learning(network, {"gx", "gy"})(2))));
    return std::ranges::count_if(
        graph.nodes(), [](const graph::Node& node) { return node.op == "superstep.ConvWeightGradient"; });
  };
  EXPECT_EQ(gradients(90), 2);
  EXPECT_EQ(gradients(9), 1) << "rows too short for planes";
}

TEST(ConvolutionBorders, ASplitIsAConvolutionForEachPart) {
  const auto convolutions = [](std::int64_t axis, bool read_twice) {
    const Graph graph =
        target::cpu::split_convolutions(Network{.body = [=](op::Builder& b, test::Layers& layers, Var x) {
          const Var y = layers.conv(x, "conv", 4, 3, {.pads = {1, 1, 1, 1}});
          const std::int64_t half = axis == 1 ? 2 : 24;
          const auto parts = op::split(y, axis, {half, half});
          b.output("a", parts[0]), b.output("b", parts[1]);
          if (read_twice) b.output("y", y);
        }}(1));
    return std::ranges::count_if(graph.nodes(), [](const graph::Node& node) { return node.op == "Conv"; });
  };
  EXPECT_EQ(convolutions(1, false), 2);
  EXPECT_EQ(convolutions(3, false), 1);
  EXPECT_EQ(convolutions(1, true), 1);
}

}  // namespace
}  // namespace superstep
