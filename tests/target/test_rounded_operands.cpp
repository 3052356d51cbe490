// Weights, biases and factors that a graph computes and then rounds: kernels read what was not rounded yet
// where that lies in memory, and the rounded value where it does not.
#include <gtest/gtest.h>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "tests/target/run.h"

namespace superstep::test {
namespace {

struct Form {
  const char* name;
  const char* op;
  std::vector<std::int64_t> x, weights, bias, factor;  // no bias: empty; the factor multiplies the result
};

// x * (factor of chain) + ..., all made by a chain that ends with a conversion to bf16 which two nodes read.
target::GraphAtBatch computed_operands(const Form& form) {
  return [=](std::int64_t) {
    graph::Graph graph;
    op::Builder b(graph);
    std::vector<op::Var> rounded;
    const auto made = [&](const char* name, const std::vector<std::int64_t>& shape) {
      const op::Var u = b.input(name, ElementType::f32, Shape(shape));
      rounded.push_back(op::cast(b.node1("Sigmoid", {u}) * u, ElementType::bf16));
      return rounded.back();
    };
    const op::Var x = op::cast(b.input("x", ElementType::f32, Shape(form.x)), ElementType::bf16);
    const op::Var weights = made("weights", form.weights);
    op::Var y = form.bias.empty() ? b.node1(form.op, {x, weights})
                                  : b.node1(form.op, {x, weights, made("bias", form.bias)});
    y = y * made("factor", form.factor);
    b.output("y", op::cast(y, ElementType::f32));
    for (const op::Var& value : rounded)
      b.output("r" + std::to_string(value.id().index()), op::cast(value + value, ElementType::f32));
    return graph;
  };
}

TEST(RoundedOperands, MayBeComputedByTheGraphItself) {
  for (const Form& form :
       {Form{"one pixel", "Conv", {1, 24, 1, 1}, {16, 24, 1, 1}, {16}, {1, 16, 1, 1}},
        Form{"image", "Conv", {1, 24, 6, 5}, {16, 24, 3, 3}, {16}, {1, 16, 1, 1}},
        Form{"same size", "Conv", {1, 24, 6, 5}, {16, 24, 1, 1}, {16}, {1, 16, 6, 5}},
        Form{"two images", "Conv", {2, 24, 6, 5}, {16, 24, 1, 1}, {}, {1, 16, 1, 1}},
        Form{"transposed", "ConvTranspose", {1, 24, 6, 5}, {24, 16, 3, 3}, {16}, {1, 16, 1, 1}},
        Form{"product", "MatMul", {20, 24}, {24, 16}, {}, {16}},
        Form{"row", "MatMul", {1, 24}, {24, 16}, {}, {1, 16}},
        Form{"layer", "Gemm", {20, 24}, {24, 16}, {16}, {16}},
        Form{"row of a layer", "Gemm", {1, 24}, {24, 16}, {16}, {1, 16}}}) {
    const auto model = computed_operands(form);
    Runner cpu("cpu", model, {.batch = 1, .threads = 2}), reference("reference", model, {.batch = 1});
    cpu.run();
    reference.run();
    for (std::size_t i = 0; i < cpu.outputs.size(); ++i)
      expect_close(cpu.outputs[i], reference.outputs[i], 3e-2, form.name);
  }
}

}  // namespace
}  // namespace superstep::test
