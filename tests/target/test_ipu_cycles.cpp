// Cycles of operators' programs beside those that are predicted for the operators.
#include <gtest/gtest.h>

#include "superstep/bsp/compile/device.h"
#include "superstep/machine/ipu/code_size.h"
#include "superstep/machine/ipu/vertex_cycles.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/rows/normalization_gradient.h"
#include "superstep/op/window/resize.h"
#include "superstep/target/ipu/cut/cut_rules.h"
#include "superstep/target/ipu/ipu.h"
#include "superstep/target/ipu/lower/planned.h"
#include "superstep/target/ipu/lower/prepare.h"
#include "superstep/target/ipu/lower/timed.h"
#include "superstep/target/target.h"

namespace superstep {
namespace {

using Build = std::function<std::vector<op::Var>(op::Builder&)>;
using Extents = std::vector<std::int64_t>;

// Without the host, and without the time to launch a program.
double cycles_of(const bsp::Profile& profile) {
  const bsp::StepCost& cost = profile.total.cost;
  return static_cast<double>(cost.total() - cost.host_exchange - cost.control);
}

struct Cycles {
  double executed, predicted;
};

Cycles cycles_of(const Build& build) {
  graph::Graph graph("case");
  op::Builder b(graph);
  const std::vector<op::Var> results = build(b);
  for (std::size_t i = 0; i < results.size(); ++i) b.output("y" + std::to_string(i), results[i]);
  const graph::Graph prepared = target::ipu::prepare_for_tiles(graph);
  return {cycles_of(target::ipu::timed_profile(prepared, "gc200")),
          cycles_of(target::ipu::planned_profile(prepared, "gc200", "a test"))};
}

op::Var input(op::Builder& b, const char* name, const Shape& shape, ElementType element = ElementType::f32) {
  return b.input(name, element, shape);
}

struct Operator {
  const char* name;
  Build build;
};

// One node over inputs of f32.
Operator node(const char* op, std::vector<Shape> shapes, graph::Attributes attributes = {}, int outputs = 1) {
  return {op, [=](op::Builder& b) {
            std::vector<op::Var> inputs;
            for (const Shape& shape : shapes)
              inputs.push_back(b.input("x" + std::to_string(inputs.size()), ElementType::f32, shape));
            return b.node(op, inputs, attributes, outputs);
          }};
}

Operator indexed(const char* op, const Shape& data, const Shape& indices, std::optional<Shape> updates,
                 graph::Attributes attributes = {}) {
  return {
      op, [=](op::Builder& b) {
        std::vector<op::Var> inputs{input(b, "data", data), input(b, "indices", indices, ElementType::i32)};
        if (updates) inputs.push_back(input(b, "updates", *updates));
        return b.node(op, inputs, attributes);
      }};
}

Operator lstm(std::int64_t steps, std::int64_t batch, std::int64_t width, bool gradient) {
  return {gradient ? "superstep.LSTMGradient" : "LSTM", [=](op::Builder& b) {
            std::vector<op::Var> x{input(b, "x", {steps, batch, width}), input(b, "w", {1, 4 * width, width}),
                                   input(b, "r", {1, 4 * width, width}), input(b, "bias", {1, 8 * width})};
            const op::Var h = input(b, "h", {1, batch, width}), c = input(b, "c", {1, batch, width});
            if (!gradient) {
              x.insert(x.end(), {op::Var(), h, c});
              return b.node("LSTM", x, {{"hidden_size", width}}, 3);
            }
            x.insert(x.end(), {h, c, input(b, "y", {steps, 1, batch, width}),
                               input(b, "dy", {steps, 1, batch, width})});
            return b.node("superstep.LSTMGradient", x, {{"hidden_size", width}}, 6);
          }};
}

std::vector<Operator> operators() {
  const Extents two{2, 2};
  const graph::Attributes halves{{"kernel_shape", two}, {"strides", two}};
  graph::Attributes back = halves;
  back.set("input_shape", Extents{8, 32, 32, 32});
  const graph::Attributes adds{{"reduction", std::string("add")}}, second{{"axis", std::int64_t{1}}};
  graph::Attributes adds_along = adds;
  adds_along.set("axis", std::int64_t{1});
  return {
      {"Resize",
       [](op::Builder& b) {
         return std::vector{
             op::resize(input(b, "x", {1, 16, 64, 64}), {1, 16, 128, 128}, {.mode = "linear"})};
       }},
      {"RandomMask",
       [](op::Builder& b) {
         const op::Var counter = b.input("counter", ElementType::i64, {});
         return b.node("superstep.RandomMask", std::span(&counter, 1),
                       {{"keep", 0.5}, {"shape", Extents{64, 4096}}});
       }},
      node("superstep.LayerNormalizationGradient", {{8, 128, 256}, {8, 128, 256}, {256}}, {}, 3),
      node("LayerNormalization", {{8, 128, 256}, {256}, {256}}),
      node("Softmax", {{1024, 256}}),
      node("GroupNormalization", {{8, 32, 16, 16}, {32}, {32}}, {{"num_groups", std::int64_t{8}}}),
      node("InstanceNormalization", {{8, 32, 16, 16}, {32}, {32}}),
      indexed("Gather", {512, 64}, {4, 128}, std::nullopt),
      indexed("GatherElements", {1024, 1000}, {1024, 1}, std::nullopt, second),
      indexed("GatherND", {64, 16, 32}, {512, 2}, std::nullopt),
      indexed("ScatterND", {512, 64}, {256, 1}, Shape{256, 64}, adds),
      indexed("ScatterElements", {1024, 1000}, {1024, 1}, Shape{1024, 1}, adds_along),
      node("Attention", {{4, 8, 64, 32}, {4, 8, 64, 32}, {4, 8, 64, 32}}),
      node("Einsum", {{16, 64, 64}, {16, 64, 64}}, {{"equation", std::string("bij,bjk->bik")}}),
      node("MaxPool", {{8, 32, 32, 32}}, halves),
      node("superstep.AveragePoolGradient", {{8, 32, 16, 16}}, back),
      node("ArgMax", {{1024, 256}}),
      {"TopK",
       [](op::Builder& b) {
         return b.node("TopK", std::vector{input(b, "x", {64, 4096}), b.integers({1})}, {}, 2);
       }},
      node("ReduceSum", {{4096, 256}}, {{"keepdims", std::int64_t{0}}}),
  };
}

// Small operators take what a superstep takes at least, which the exchange of the operands is not in.
TEST(IpuCycles, OperatorsTakeAboutWhatIsPredicted) {
  for (const Operator& one : operators()) {
    const Cycles cycles = cycles_of(one.build);
    const double ratio = cycles.executed / cycles.predicted;
    std::printf("%-38s executed %7.0f, predicted %7.0f, ratio %.2f\n", one.name, cycles.executed,
                cycles.predicted, ratio);
    EXPECT_GT(ratio, 0.4) << one.name;
    EXPECT_LT(ratio, 2.2) << one.name;
  }
}

// Lines that are fewer than tiles are shared by them: 16,384 elements take one tile 16,384 / 6 turns of three
// cycles on six workers.
TEST(IpuCycles, TheElementsOfALineAreSharedByTiles) {
  const Cycles cycles = cycles_of(node("ArgMax", {{16384, 4}}).build);
  std::printf("executed %.0f, predicted %.0f\n", cycles.executed, cycles.predicted);
  EXPECT_LT(cycles.executed, 3000);
  EXPECT_LT(cycles.predicted, 3000);
}

// Scaling by statistics that lie on few tiles is cut over all of them.
TEST(IpuCycles, NormalisationsAreScaledOnAllTiles) {
  const auto model = [](std::int64_t) {
    graph::Graph graph("normalised");
    op::Builder b(graph);
    b.output("y", node("InstanceNormalization", {{8, 32, 16, 16}, {32}, {32}}).build(b)[0]);
    return graph;
  };
  std::string kernel;
  for (const target::PlanStep& step :
       target::find_target("gc200").compile(model, {.batch = 1})->summary().steps)
    if (step.op == "BatchNormalization") kernel = step.kernel;
  std::erase(kernel, ',');  // "1,376 vertices"
  EXPECT_GT(std::stoi(kernel), 1000) << kernel;
}

// The steps of a graph's program whose names have these letters.
std::vector<bsp::StepProfile> steps_with(const Build& build, const std::string& letters) {
  graph::Graph graph("case");
  op::Builder b(graph);
  b.output("y", build(b)[0]);
  std::vector<bsp::StepProfile> found;
  for (const bsp::StepProfile& step : target::ipu::timed_profile(graph, "gc200").compilation.steps)
    if (step.name.find(letters) != std::string::npos) found.push_back(step);
  return found;
}

// Partial results are read where they lie or have arrived: a tile does nothing but its vertices.
TEST(IpuCycles, PartialResultsAreNotMovedOnTheirTile) {
  for (const Operator& one :
       {node("ReduceSum", {{4096, 256}}), node("Conv", {{1, 64, 8, 8}, {32, 64, 3, 3}})}) {
    const std::vector<bsp::StepProfile> steps = steps_with(one.build, "combine");
    ASSERT_FALSE(steps.empty()) << one.name;
    for (const bsp::StepProfile& step : steps) {
      std::uint64_t vertices = 0;
      for (const auto& [name, cycles] : step.cycles_by_vertex) vertices += cycles;
      EXPECT_EQ(step.compute_cycles_busy, vertices) << one.name << ", " << step.name;
    }
  }
}

// Who first reads an input decides where it lies, be it in another shape.
TEST(IpuCycles, InputsLieWhereTheyAreReadThroughAView) {
  const auto steps = steps_with(
      [](op::Builder& b) {
        const op::Var x = b.node1("Reshape", {input(b, "x", {8, 32, 16, 16}), b.integers({256, 256})});
        return b.node("Softmax", std::span(&x, 1));
      },
      "Softmax");
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].exchanged_bytes, 0u);
}

// A mean and a variance are two sums of what is loaded.
TEST(IpuCycles, StatisticsAreTwoSums) {
  const machine::ipu::Hardware hardware = target::ipu::hardware_of("gc200");
  const graph::Attributes none;
  const graph::ValueType channels{ElementType::f32, {8}};
  const target::ipu::PartTypes types{none, {{ElementType::f32, {1, 8, 60}}}, {channels, channels}};
  EXPECT_EQ(target::ipu::part_cycles(hardware, "superstep.ChannelMoments", types),
            static_cast<std::uint64_t>(2 * machine::ipu::reduce_cycles(hardware, 8, 60, ElementType::f32)));
}

// Cells are cut by samples: a tile has all weights and makes its samples' steps on its own.
TEST(IpuCycles, RecurrentGradientsAreCutBySamples) {
  const Cycles some = cycles_of(lstm(4, 32, 16, true).build), more = cycles_of(lstm(4, 256, 16, true).build);
  std::printf("executed %.0f for 32 samples, %.0f for 256\n", some.executed, more.executed);
  EXPECT_LT(more.executed, 2 * some.executed);
}

// What is one vertex says why.
TEST(IpuCycles, AnOperatorThatStaysWholeSaysWhy) {
  const auto model = [](std::int64_t) {
    graph::Graph graph("whole");
    op::Builder b(graph);
    const op::Var x = b.input("x", ElementType::f32, {1000});
    b.output("y", b.node("DynamicQuantizeLinear", std::span(&x, 1), {}, 3)[0]);
    return graph;
  };
  const auto steps = target::find_target("gc200").compile(model, {.batch = 1})->summary().steps;
  ASSERT_EQ(steps.size(), 1u);
  ASSERT_EQ(steps[0].refusals.size(), 1u);
  EXPECT_EQ(steps[0].refusals[0], "parts on many tiles: its scale is that of all elements");
}

// Predictions and programs count code by the same numbers.
TEST(IpuCycles, CodeIsCountedAlike) {
  const bsp::OpenConstants& constants = bsp::gc200_device().constants;
  EXPECT_EQ(machine::ipu::stack_bytes, constants.runtime_bytes.value);
  EXPECT_EQ(machine::ipu::vertex_code_bytes, constants.vertex_code_bytes.value);
  EXPECT_EQ(machine::ipu::control_code_bytes, constants.control_code_bytes.value);
  EXPECT_EQ(machine::ipu::exchange_code_bytes, constants.exchange_code_bytes.value);
}

}  // namespace
}  // namespace superstep
