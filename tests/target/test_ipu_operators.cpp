// Operators in parts on machines of few and many tiles, against the reference evaluation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "superstep/bsp/engine/engine.h"
#include "superstep/machine/cost_model.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/target/ipu/cut/choose.h"
#include "superstep/target/ipu/cut/part.h"
#include "superstep/target/ipu/ipu.h"
#include "superstep/target/ipu/lower/lowering.h"
#include "superstep/target/ipu/lower/planned.h"
#include "superstep/target/ipu/lower/prepare.h"
#include "superstep/target/ipu/lower/timed.h"
#include "superstep/target/target.h"
#include "superstep/workload/workload.h"
#include "tests/contains.h"
#include "tests/target/models.h"

namespace superstep {
namespace {

using Build = std::function<std::vector<op::Var>(op::Builder&)>;
using Integers = std::vector<std::int64_t>;

graph::Graph graph_of(const Build& build) {
  graph::Graph graph("case");
  op::Builder b(graph);
  const std::vector<op::Var> results = build(b);
  for (std::size_t i = 0; i < results.size(); ++i) b.output("y" + std::to_string(i), results[i]);
  return graph;
}

std::vector<Tensor> inputs_of(const graph::Graph& graph) {
  std::vector<Tensor> inputs;
  for (const graph::ValueId id : graph.inputs())
    inputs.push_back(test::random_tensor(graph.type(id).element, graph.type(id).shape, inputs.size() + 3));
  return inputs;
}

// Compiled for a GC200 of so many tiles; the parts that its vertices were is added up in `vertices`.
std::vector<Tensor> on_tiles(const graph::Graph& graph, std::span<const Tensor> inputs, std::uint32_t tiles,
                             int threads, std::uint64_t& vertices) {
  bsp::Device machine = target::ipu::device_of("gc200");
  machine.tiles_per_ipu = tiles;
  machine.bytes_per_tile = 64u << 20;
  const auto lowered = target::ipu::lower(graph, machine, target::ipu::hardware_of("gc200"));
  const bsp::Program programs[] = {lowered.program};
  bsp::Engine engine(lowered.graph, programs, {.threads = threads});
  std::vector<Tensor> outputs;
  for (const graph::Output& output : graph.outputs())
    outputs.emplace_back(graph.type(output.value).element, graph.type(output.value).shape);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    engine.connect_stream_to_callback("in:" + graph.value(graph.inputs()[i]).name, [&, i](void* data) {
      std::memcpy(data, inputs[i].bytes(), inputs[i].byte_count());
    });
  for (std::size_t i = 0; i < outputs.size(); ++i)
    engine.connect_stream_to_callback("out:" + graph.outputs()[i].name, [&, i](void* data) {
      std::memcpy(outputs[i].bytes(), data, outputs[i].byte_count());
    });
  engine.run();
  vertices = engine.profile().compilation.vertices;
  return outputs;
}

void expect_close(const Tensor& actual, const Tensor& expected, const std::string& name) {
  double scale = 1e-3;
  for (std::int64_t i = 0; i < expected.element_count(); ++i)
    scale = std::max(scale, std::abs(expected.at(i)));
  for (std::int64_t i = 0; i < actual.element_count(); ++i)
    ASSERT_NEAR(actual.at(i), expected.at(i), 2e-6 * scale) << name << " at " << i;
}

std::vector<Tensor> by_reference(const graph::Graph& graph, std::span<const Tensor> inputs) {
  const auto reference = target::find_target("reference").compile([&](std::int64_t) { return graph; }, {});
  std::vector<Tensor> expected;
  for (const auto& port : reference->outputs()) expected.emplace_back(port.type.element, port.type.shape);
  reference->run(inputs, expected);
  return expected;
}

void expect_as_reference(const char* name, const Build& build) {
  const graph::Graph graph = graph_of(build);
  const std::vector<Tensor> inputs = inputs_of(graph), expected = by_reference(graph, inputs);
  for (const std::uint32_t tiles : {1u, 7u, 96u}) {
    std::uint64_t vertices = 0, again = 0;
    const std::vector<Tensor> actual = on_tiles(graph, inputs, tiles, 1, vertices);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expect_close(actual[i], expected[i], std::string(name) + " on " + std::to_string(tiles));
    if (tiles != 96) continue;
    EXPECT_GT(vertices, expected.size()) << name << " is not cut";
    const std::vector<Tensor> threaded = on_tiles(graph, inputs, tiles, 3, again);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(std::memcmp(actual[i].bytes(), threaded[i].bytes(), actual[i].byte_count()), 0) << name;
  }
}

// One operator over inputs of these shapes.
void check(const char* op, const std::vector<Shape>& shapes, const graph::Attributes& attributes = {},
           int outputs = 1, const Integers& last_input = {}) {
  expect_as_reference(op, [&](op::Builder& b) {
    std::vector<op::Var> inputs;
    for (const Shape& shape : shapes)
      inputs.push_back(b.input("x" + std::to_string(inputs.size()), ElementType::f32, shape));
    if (!last_input.empty()) inputs.push_back(b.integers(last_input));
    return b.node(op, inputs, attributes, outputs);
  });
}

TEST(IpuOperators, Convolutions) {
  check("Conv", {{2, 8, 9, 7}, {16, 8, 3, 3}, {16}}, {{"pads", Integers{1, 1, 1, 1}}});
  check("Conv", {{1, 3, 12, 11}, {5, 3, 3, 2}},
        {{"strides", Integers{2, 1}}, {"pads", Integers{0, 1, 2, 0}}});
  check("Conv", {{1, 40, 6, 5}, {24, 40, 1, 1}, {24}});
  check("Conv", {{3, 16, 8, 8}, {8, 16, 1, 1}}, {{"strides", Integers{2, 2}}});
  check("Conv", {{2, 12, 7, 6}, {12, 1, 3, 3}},
        {{"group", std::int64_t{12}}, {"pads", Integers{1, 1, 1, 1}}});
  check("Conv", {{2, 8, 30}, {4, 8, 5}}, {{"dilations", Integers{2}}, {"pads", Integers{4, 4}}});
}

TEST(IpuOperators, TransposedConvolutions) {
  check("ConvTranspose", {{1, 16, 5, 6}, {16, 8, 2, 2}, {8}}, {{"strides", Integers{2, 2}}});
  check("ConvTranspose", {{2, 6, 7, 5}, {6, 5, 3, 3}}, {{"pads", Integers{1, 1, 1, 1}}});
  check("ConvTranspose", {{1, 4, 6, 6}, {4, 8, 3, 3}},
        {{"strides", Integers{2, 2}}, {"pads", Integers{1, 1, 1, 1}}, {"output_padding", Integers{1, 1}}});
  check("ConvTranspose", {{1, 8, 4, 4}, {8, 16, 1, 1}}, {{"strides", Integers{2, 2}}});
}

TEST(IpuOperators, WeightGradients) {
  check("superstep.ConvWeightGradient", {{4, 8, 9, 8}, {4, 6, 9, 8}},
        {{"kernel_shape", Integers{3, 3}}, {"pads", Integers{1, 1, 1, 1}}});
  check("superstep.ConvWeightGradient", {{2, 16, 8, 8}, {2, 24, 4, 4}},
        {{"kernel_shape", Integers{1, 1}}, {"strides", Integers{2, 2}}});
}

// Which of an operator's kernel the planner cuts on so many tiles.
int kernel_cuts(const graph::Graph& graph, std::uint32_t tiles) {
  machine::ipu::Hardware hardware = target::ipu::hardware_of("gc200");
  hardware.tiles = tiles;
  const auto choice =
      target::ipu::choose_product(hardware, target::ipu::operation_of(graph, graph.nodes().front()));
  int cuts = 0;
  for (std::size_t i = 0; choice && i < choice->partition.bounds.size(); ++i)
    cuts += choice->partition.cuts.axes[i].taps >= 0 && choice->partition.bounds[i].size() > 2;
  return cuts;
}

struct KernelCase {
  const char* op;
  std::vector<Shape> shapes;
  graph::Attributes attributes;
};

// Large kernels on few positions and channels, where kernels are what is left to cut: in one to three
// dimensions, with strides, dilations and groups.
std::vector<KernelCase> kernel_cases() {
  const auto with = [](std::vector<std::pair<const char*, Integers>> lists, std::int64_t group = 1) {
    graph::Attributes attributes{{"group", group}};
    for (auto& [name, list] : lists) attributes.set(name, list);
    return attributes;
  };
  const char* by_weights = "superstep.ConvWeightGradient";
  return {
      {"Conv", {{1, 2, 11, 11}, {3, 2, 11, 11}, {3}}, with({{"strides", {4, 6}}, {"pads", {5, 4, 5, 3}}})},
      {"Conv", {{1, 4, 40}, {2, 4, 13}, {2}}, with({{"dilations", {3}}})},
      {"Conv", {{1, 2, 7, 6, 8}, {2, 2, 7, 5, 7}}, with({{"pads", {0, 0, 0, 0, 0, 1}}})},
      {"ConvTranspose", {{1, 64, 2, 2}, {64, 1, 9, 9}, {1}}, with({{"strides", {3, 3}}})},
      {by_weights,
       {{1, 1, 20, 20}, {1, 2, 20, 20}},
       with({{"kernel_shape", {11, 11}}, {"pads", {5, 5, 5, 5}}})},
      {by_weights,
       {{2, 2, 60}, {2, 3, 26}},
       with({{"kernel_shape", {19}}, {"dilations", {2}}, {"pads", {1, 1}}})},
      {by_weights, {{1, 4, 14, 14}, {1, 4, 10, 10}}, with({{"kernel_shape", {5, 5}}}, 2)},
      {by_weights, {{1, 1, 8, 8, 8}, {1, 2, 4, 4, 4}}, with({{"kernel_shape", {5, 5, 5}}})}};
}

// On tiles that do not divide them.
TEST(IpuOperators, KernelsInParts) {
  int cuts = 0;
  for (const auto& [op, shapes, attributes] : kernel_cases()) {
    const Build build = [&](op::Builder& b) {
      std::vector<op::Var> inputs;
      for (const Shape& shape : shapes)
        inputs.push_back(b.input("x" + std::to_string(inputs.size()), ElementType::f32, shape));
      return b.node(op, inputs, attributes, 1);
    };
    const graph::Graph graph = graph_of(build);
    const std::vector<Tensor> inputs = inputs_of(graph), expected = by_reference(graph, inputs);
    int here = 0;
    for (const std::uint32_t tiles : {1u, 2u, 3u, 5u, 8u, 13u, 21u, 32u, 48u, 64u}) {
      here += kernel_cuts(graph, tiles);
      std::uint64_t vertices = 0;
      const std::vector<Tensor> actual = on_tiles(graph, inputs, tiles, 1, vertices);
      expect_close(actual[0], expected[0], std::string(op) + " on " + std::to_string(tiles));
    }
    cuts += here > 0;
  }
  EXPECT_GE(cuts, 6);
}

// The first convolution in a graph: how its parts are planned with kernels cut and with whole ones, and which
// of the two is chosen.
struct BothPlans {
  std::string cut, whole, chosen;
};
BothPlans both_plans(const char* name, const Shape& first, const Shape& second, const Shape& weights) {
  const graph::Graph graph = graph_of([&](op::Builder& b) {
    const op::Var x = b.input("x", ElementType::f32, first), y = b.input("y", ElementType::f32, second);
    return std::vector<op::Var>{
        b.node1(name, {x, y}, {{"kernel_shape", Integers{3, 3}}, {"pads", Integers{1, 1, 1, 1}}})};
  });
  const graph::Node& node = graph.nodes().front();
  const machine::ipu::Hardware hardware = target::ipu::hardware_of("gc200");
  const auto planned = [&](machine::ipu::Kernels kernels) {
    const auto convolution =
        machine::ipu::convolution_of(op::conv_geometry(node.attributes, first, weights), ElementType::f32);
    const auto pass = machine::ipu::pass_of(op::traits_of(node.op).product_kind);
    return machine::ipu::plan_parts(hardware, convolution, pass, {}, kernels).plan.partition;
  };
  const auto choice = target::ipu::choose_product(hardware, target::ipu::operation_of(graph, node));
  return {planned(machine::ipu::Kernels::cut), planned(machine::ipu::Kernels::whole),
          choice ? choice->product->plan.plan.partition : ""};
}

// Of the gradient by the weights of a layer with many positions and few channels parts that may have some of
// the kernel receive more than the search thinks; of a smaller layer forwards they are the faster ones.
TEST(IpuOperators, KernelsAreCutWhereThatIsCheaper) {
  const Shape weights{32, 16, 3, 3};
  const BothPlans gradient =
      both_plans("superstep.ConvWeightGradient", {1, 16, 128, 128}, {1, 32, 128, 128}, weights);
  EXPECT_NE(gradient.whole, gradient.cut);
  EXPECT_EQ(gradient.chosen, gradient.whole);
  const BothPlans forward = both_plans("Conv", {1, 16, 64, 64}, weights, weights);
  EXPECT_NE(forward.whole, forward.cut);
  EXPECT_EQ(forward.chosen, forward.cut);
}

TEST(IpuOperators, Products) {
  check("MatMul", {{3, 17, 40}, {40, 22}});
  check("MatMul", {{2, 3, 9, 16}, {2, 3, 16, 11}});
  check("Gemm", {{5, 300}, {64, 300}, {64}}, {{"transB", std::int64_t{1}}});
  check("Gemm", {{48, 20}, {48, 31}}, {{"transA", std::int64_t{1}}, {"alpha", 0.5}});
}

// Gradients of products take operands in another order than they lie in. Where many parts read the same
// elements all tiles put them in order first, in a step of its own, and those parts are not charged for it.
TEST(IpuOperators, OperandsInOrderFirst) {
  const graph::Graph graph = graph_of([](op::Builder& b) {
    b.set_phase(graph::Phase::backward);
    const op::Var dy = b.input("dy", ElementType::f32, {256, 96}),
                  w = b.input("w", ElementType::f32, {96, 700});
    return std::vector<op::Var>{b.node1("Gemm", {dy, w})};
  });
  const std::vector<Tensor> inputs = inputs_of(graph), expected = by_reference(graph, inputs);
  for (const std::uint32_t tiles : {1u, 5u, 64u, 512u}) {
    std::uint64_t vertices = 0;
    expect_close(on_tiles(graph, inputs, tiles, 1, vertices)[0], expected[0], std::to_string(tiles));
  }
  const machine::ipu::Hardware hardware = target::ipu::hardware_of("gc200");
  const target::ipu::Operation operation = target::ipu::operation_of(graph, graph.nodes().front());
  auto choice = target::ipu::choose_product(hardware, operation);
  ASSERT_TRUE(choice);
  ASSERT_GT(choice->product->ordered.right, 0);
  const auto part = target::ipu::part_shape(op::get("Gemm"), operation, choice->partition,
                                            target::ipu::part_of(choice->partition, 0));
  const auto without = target::ipu::product_cycles(hardware, *choice->product, operation, part);
  choice->product->ordered = {};
  EXPECT_LT(without, target::ipu::product_cycles(hardware, *choice->product, operation, part));
  const bsp::Profile profile = target::ipu::timed_profile(graph, "gc200");
  EXPECT_EQ(std::ranges::count_if(profile.compilation.compute_set_names,
                                  [](const std::string& name) { return name.ends_with("/order"); }),
            1);
}

// Long lines of running sums in blocks: lengths that blocks divide and that they do not, both ends, every
// direction, an axis in the middle; on one tile to many more than there are lines.
TEST(IpuOperators, ScansInBlocks) {
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, int>>{
           {{512}, 0}, {{1013}, 0}, {{2, 1200}, 1}, {{2, 521, 3}, 1}, {{600, 4}, -2}})
    for (const bool exclusive : {false, true})
      for (const bool reversed : {false, true}) {
        const graph::Graph graph = graph_of([&](op::Builder& b) {
          return std::vector<op::Var>{
              op::cumsum(b.input("x", ElementType::f32, shape), axis, exclusive, reversed)};
        });
        const std::string name = fmt::format("{} axis {} {} {}", to_string(shape), axis, exclusive, reversed);
        const graph::Graph blocks = target::ipu::prepare_for_tiles(graph);
        EXPECT_EQ(std::ranges::count(blocks.nodes(), "CumSum", &graph::Node::op), 2) << name;
        const std::vector<Tensor> inputs = inputs_of(graph), expected = by_reference(graph, inputs);
        for (const std::uint32_t tiles : {1u, 3u, 7u, 16u, 33u, 64u}) {
          std::uint64_t vertices = 0;
          expect_close(on_tiles(blocks, inputs, tiles, 1, vertices)[0], expected[0],
                       name + " on " + std::to_string(tiles));
        }
      }
}

TEST(IpuOperators, Reductions) {
  for (const char* op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare"}) {
    check(op, {{6, 20, 33}}, {{"keepdims", std::int64_t{0}}}, 1, {0, 2});
    check(op, {{7, 500}});
  }
  check("superstep.ChannelMoments", {{3, 8, 9, 10}}, {}, 2);
  check("superstep.ChannelSums", {{2, 16, 9, 10}, {2, 16, 9, 10}, {16}}, {}, 2);
  check("GlobalAveragePool", {{2, 24, 9, 9}});
}

TEST(IpuOperators, PoolingAndResampling) {
  const graph::Attributes overlapping{
      {"kernel_shape", Integers{3, 3}}, {"strides", Integers{2, 2}}, {"pads", Integers{1, 1, 1, 1}}};
  check("MaxPool", {{2, 8, 13, 12}}, overlapping);
  check("AveragePool", {{2, 8, 13, 12}}, overlapping);
  check("MaxPool", {{1, 3, 16, 16}}, {{"kernel_shape", Integers{2, 2}}, {"ceil_mode", std::int64_t{1}}});
}

// Both results of a pooling and what its gradient does with the places.
TEST(IpuOperators, PlacesOfMaxima) {
  for (const bool side_by_side : {true, false})
    expect_as_reference("MaxPoolGradient", [&](op::Builder& b) {
      const op::Var x = b.input("x", ElementType::f32, {2, 8, 12, 16});
      graph::Attributes attributes{{"kernel_shape", Integers{2, 2}}, {"strides", Integers{2, 2}}};
      if (!side_by_side) attributes.set("strides", Integers{1, 1});
      const std::vector<op::Var> pooled = b.node("MaxPool", std::span(&x, 1), attributes, 2);
      const op::Var back = b.node1("superstep.MaxPoolGradient", {pooled[0], pooled[1]},
                                   {{"input_shape", Integers{2, 8, 12, 16}}});
      return std::vector<op::Var>{pooled[0], back};
    });
}

// The best of a line alone is found by several tiles, each in its part of the line; of equals it is the
// first.
TEST(IpuOperators, PlacesOfTheBestOfALine) {
  for (const std::int64_t largest : {1, 0}) {
    check("TopK", {{3, 700}}, {{"largest", largest}}, 2, {1});
    check("TopK", {{4000, 2}}, {{"largest", largest}, {"axis", std::int64_t{0}}}, 2, {1});
    check("TopK", {{3, 700}}, {{"largest", largest}}, 1, {1});
    expect_as_reference("TopK of few values", [&](op::Builder& b) {
      const op::Var x = b.input("x", ElementType::f32, {3, 2000});
      const op::Var few = b.node("Round", std::span(&x, 1))[0];
      return b.node("TopK", std::vector{few, b.integers({1})}, {{"largest", largest}}, 2);
    });
  }
  check("TopK", {{30, 70}}, {}, 2, {3});
  check("ArgMax", {{30, 70}}, {{"axis", std::int64_t{1}}, {"select_last_index", std::int64_t{1}}});
}

TEST(IpuOperators, ElementwiseAndRows) {
  check("Add", {{2, 16, 9, 7}, {16, 1, 1}});
  check("Mul", {{300}, {300}});
  check("Relu", {{2, 16, 30}});
  expect_as_reference("BatchNormalization", [](op::Builder& b) {
    const op::Var x = b.input("x", ElementType::f32, {2, 16, 9, 7});
    std::vector<op::Var> channels;
    for (const char* name : {"scale", "bias", "mean", "deviation"})
      channels.push_back(b.input(name, ElementType::f32, {16}));
    const op::Var variance = b.node1("Mul", {channels[3], channels[3]});
    return std::vector{b.node1("BatchNormalization", {x, channels[0], channels[1], channels[2], variance})};
  });
  check("Softmax", {{40, 33}});
  check("LayerNormalization", {{6, 20, 32}, {32}, {32}});
}

std::vector<std::string> operators_of(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (const auto& step : target::find_target("gc200")
                              .compile([&](std::int64_t) { return graph; }, {.batch = 1})
                              ->summary()
                              .steps)
    names.push_back(step.op);
  return names;
}

// What lies between element-wise operators of a layer is not kept, unless somebody else reads it; who reads
// it in between ends the row.
TEST(IpuOperators, ElementwiseOperatorsInARowAreOneVertex) {
  const auto tanh = [](const op::Var& x) { return x.builder().node1("Tanh", {x}); };
  const Build row = [&](op::Builder& b) {
    const op::Var x = b.input("x", ElementType::f32, {2, 16, 9, 7}),
                  y = b.input("y", ElementType::f32, {16, 1, 1});
    const op::Var product = x * y, sum = tanh(product) + product;
    return std::vector<op::Var>{tanh(sum) * 2.0, sum};
  };
  const Build read_between = [&](op::Builder& b) {
    const op::Var x = b.input("x", ElementType::f32, {6, 40}), square = x * x;
    const op::Var mean = b.node1("ReduceMean", {square, b.integers({1})});
    return std::vector<op::Var>{tanh(square) - mean};
  };
  expect_as_reference("a row of five", row);
  expect_as_reference("read in between", read_between);
  EXPECT_EQ(operators_of(graph_of(row)), (std::vector<std::string>{"Mul + Tanh + Add + Tanh + Mul"}));
  EXPECT_EQ(operators_of(graph_of(read_between)),
            (std::vector<std::string>{"Mul", "ReduceMean", "Tanh + Sub"}));
  const Build layers = [&](op::Builder& b) {
    const op::Var x = b.input("x", ElementType::f32, {6, 40});
    b.set_name("first");
    const op::Var first = tanh(x);
    b.set_name("second");
    return std::vector<op::Var>{tanh(first)};
  };
  EXPECT_EQ(operators_of(graph_of(layers)), (std::vector<std::string>{"Tanh", "Tanh"}));
}

// Cycles that a program takes without the host, and those that are predicted without launching kernels.
double executed_to_predicted(const char* name, const std::vector<std::string>& options) {
  const graph::Graph graph =
      target::ipu::prepare_for_tiles(workload::build_model(workload::find_workload(name), 1, options));
  const bsp::Profile executed = target::ipu::timed_profile(graph, "gc200"),
                     planned = target::ipu::planned_profile(graph, "gc200", "a test");
  EXPECT_TRUE(executed.compilation.too_full.empty());
  EXPECT_EQ(executed.compilation.planned, "");
  const auto without = [](const bsp::Profile& profile) {
    const bsp::StepCost& cost = profile.total.cost;
    return static_cast<double>(cost.total() - cost.host_exchange - cost.control);
  };
  return without(executed) / without(planned);
}

TEST(IpuOperators, ProgramsTakeAboutWhatIsPredicted) {
  for (const auto& [name, options] : std::vector<std::pair<const char*, std::vector<std::string>>>{
           {"braggnn", {}}, {"uno", {"width=256"}}, {"unet-64", {}}}) {
    const double ratio = executed_to_predicted(name, options);
    std::printf("%s: executed / predicted = %.2f\n", name, ratio);
    EXPECT_GT(ratio, 0.6) << name;
    EXPECT_LT(ratio, 2.2) << name;
  }
}

TEST(IpuOperators, APlannedPageSaysSo) {
  const graph::Graph graph =
      target::ipu::prepare_for_tiles(workload::build_model(workload::find_workload("mlp"), 4, {}));
  const bsp::Profile planned = target::ipu::planned_profile(graph, "gc200", "too many parts");
  const std::string html = bsp::profile_to_html(planned);
  EXPECT_TRUE(contains(html, "Planned, not executed: too many parts"));
  EXPECT_TRUE(contains(html, "Timeline of supersteps"));
  EXPECT_EQ(bsp::profile_to_html(target::ipu::timed_profile(graph, "gc200")).find("Planned, not executed"),
            std::string::npos);
}

TEST(IpuOperators, APageShowsWhatDoesNotFit) {
  const graph::Graph graph = graph_of([](op::Builder& b) {
    const op::Var x = b.input("x", ElementType::f32, {1, 300000000});
    return b.node("Relu", std::span(&x, 1));
  });
  const bsp::Profile profile = target::ipu::timed_profile(graph, "gc200");
  EXPECT_TRUE(contains(profile.compilation.too_full, "tiles are too full"));
  EXPECT_TRUE(contains(bsp::profile_to_html(profile), "It does not fit"));
}

TEST(IpuOperators, LoweringGivesUpInTime) {
  const graph::Graph graph =
      target::ipu::prepare_for_tiles(workload::build_model(workload::find_workload("mlp"), 4, {}));
  try {
    target::ipu::timed_profile(graph, "gc200", {.seconds = 0});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_TRUE(contains(error.what(), "lowering took more than 0 s"));
  }
}

}  // namespace
}  // namespace superstep
