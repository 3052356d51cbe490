// Cycles of operators' programs beside those that are predicted for the operators.
#include <gtest/gtest.h>

#include <chrono>

#include "superstep/op/gather.h"
#include "superstep/op/normalization_gradient.h"
#include "superstep/op/resize.h"
#include "superstep/target/ipu/planned.h"
#include "superstep/target/ipu/prepare.h"
#include "superstep/target/ipu/timed.h"

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
  return {
      {"Resize x2 nearest",
       [](op::Builder& b) {
         return std::vector{op::resize(input(b, "x", {1, 16, 64, 64}), {1, 16, 128, 128})};
       }},
      {"Resize x2 linear",
       [](op::Builder& b) {
         return std::vector{
             op::resize(input(b, "x", {1, 16, 64, 64}), {1, 16, 128, 128}, {.mode = "linear"})};
       }},
      {"ResizeGradient",
       [](op::Builder& b) {
         const op::Var inputs[] = {input(b, "dy", {1, 16, 128, 128}), op::Var(), op::Var(),
                                   b.integers({1, 16, 128, 128})};
         return b.node("superstep.ResizeGradient", inputs,
                       {{"mode", std::string("linear")}, {"input_shape", Extents{1, 16, 64, 64}}});
       }},
      node("superstep.LayerNormalizationGradient", {{8, 128, 256}, {8, 128, 256}, {256}}, {}, 3),
      node("LayerNormalization", {{8, 128, 256}, {256}, {256}}),
      {"RandomMask",
       [](op::Builder& b) {
         const op::Var counter = b.input("counter", ElementType::i64, {});
         return b.node("superstep.RandomMask", std::span(&counter, 1),
                       {{"keep", 0.5}, {"shape", Extents{64, 4096}}});
       }},
      indexed("Gather", {4096, 256}, {8, 128}, std::nullopt),
      indexed("Gather", {50000, 8}, {1024}, std::nullopt),
      indexed("GatherElements", {4096, 256}, {1024, 256}, std::nullopt),
      indexed("GatherElements", {1024, 1000}, {1024, 1}, std::nullopt, {{"axis", std::int64_t{1}}}),
      indexed("GatherND", {256, 16, 64}, {512, 2}, std::nullopt),
      indexed("ScatterND", {4096, 256}, {1024, 1}, Shape{1024, 256}, {{"reduction", std::string("add")}}),
      indexed("ScatterND", {50000, 8}, {1024, 1}, Shape{1024, 8}, {{"reduction", std::string("add")}}),
      indexed("ScatterElements", {1024, 1000}, {1024, 1}, Shape{1024, 1},
              {{"axis", std::int64_t{1}}, {"reduction", std::string("add")}}),
      lstm(10, 64, 128, false),
      lstm(10, 64, 128, true),
      lstm(10, 512, 128, false),
      lstm(10, 512, 128, true),
      node("Attention", {{4, 8, 64, 32}, {4, 8, 64, 32}, {4, 8, 64, 32}}),
      node("CumSum", {{64, 64, 64}}),
      node("LRN", {{4, 32, 32, 32}}, {{"size", std::int64_t{5}}}),
      node("GroupNormalization", {{8, 32, 16, 16}, {32}, {32}}, {{"num_groups", std::int64_t{8}}}),
      node("InstanceNormalization", {{8, 32, 16, 16}, {32}, {32}}),
      node("Softmax", {{1024, 256}}),
      node("Einsum", {{16, 64, 64}, {16, 64, 64}}, {{"equation", std::string("bij,bjk->bik")}}),
      node("MaxPool", {{8, 32, 32, 32}}, {{"kernel_shape", Extents{2, 2}}, {"strides", Extents{2, 2}}}),
      node("superstep.AveragePoolGradient", {{8, 32, 16, 16}},
           {{"kernel_shape", Extents{2, 2}},
            {"strides", Extents{2, 2}},
            {"input_shape", Extents{8, 32, 32, 32}}}),
      node("GridSample", {{4, 8, 32, 32}, {4, 32, 32, 2}}),
      node("ReverseSequence", {{64, 64, 32}}),
      node("ArgMax", {{1024, 256}}),
      node("BatchNormalization", {{8, 32, 16, 16}, {32}, {32}, {32}, {32}}),
      node("DFT", {{64, 128, 2}}, {{"axis", std::int64_t{1}}}),
      node("Add", {{1024, 256}, {1024, 256}}),
      node("Gelu", {{1024, 256}}),
  };
}

TEST(IpuCycles, OperatorsTakeAboutWhatIsPredicted) {
  for (const Operator& one : operators()) {
    try {
      const auto start = std::chrono::steady_clock::now();
      const Cycles cycles = cycles_of(one.build);
      std::printf("%4.1f s %-40s executed %9.0f predicted %9.0f ratio %.2f\n",
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), one.name,
                  cycles.executed, cycles.predicted, cycles.executed / cycles.predicted);
    } catch (const Error& error) {
      std::printf("%-40s %s\n", one.name, error.what());
    }
  }
}

}  // namespace
}  // namespace superstep
