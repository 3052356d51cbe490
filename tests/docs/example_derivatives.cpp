// The example of docs/derivatives.md: an energy, its forces and its curvature.
#include <gtest/gtest.h>

#include "superstep/graph/text.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/transform/training/derivative_graphs.h"
#include "superstep/transform/training/differentiate.h"

namespace superstep::transform {
namespace {

// [derivatives]
// Particles on a line, joined to their neighbors by springs of rest length 1: half the sum of squares of
// what each spring is stretched by.
Var spring_energy(Var positions) {
  const std::int64_t count = positions.shape()[0];
  const Var stretch = op::slice(positions, {1}, {count}) - op::slice(positions, {0}, {count - 1}) - 1.0;
  return op::reduce_sum(stretch * stretch) * 0.5;
}

graph::Graph chain(std::int64_t count) {
  graph::Graph graph("chain");
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f64, {count});
  builder.output("energy", spring_energy(x));
  return graph;
}
// [end]

// [derivatives]
// While building: forces are the negative gradient, and may go on into what follows.
graph::Graph chain_with_forces(std::int64_t count) {
  graph::Graph graph("chain");
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f64, {count});
  const Var slope = gradient(builder, spring_energy(x), std::vector{x})[0];
  builder.output("forces", -slope);
  return graph;
}
// [end]

// [derivatives]
// Of a model that is there: inputs "vector/x", outputs "gradient/x" and "hessian/x".
graph::Graph curvature_of(const graph::Graph& model) {
  const std::vector<std::string> by = {"x"};
  return hessian_vector_product_graph(model, "energy", by);
}
// [end]

Tensor numbers(std::vector<double> values) {
  return Tensor::from<double>({static_cast<std::int64_t>(values.size())}, values);
}

std::vector<double> list(const Tensor& tensor) {
  const auto values = tensor.as<double>();
  return {values.begin(), values.end()};
}

TEST(DerivativesPage, ForcesPullTheEndsOfAStretchedChain) {
  const Tensor stretched = numbers({0, 2, 4});
  EXPECT_EQ(list(op::evaluate(chain_with_forces(3), {&stretched, 1}).outputs[0]),
            (std::vector<double>{1, 0, -1}));
}

TEST(DerivativesPage, TheCurvatureIsThatOfCoupledSprings) {
  const Tensor inputs[] = {numbers({0, 2, 4}), numbers({1, 0, 0})};
  const auto outputs = op::evaluate(curvature_of(chain(3)), inputs).outputs;
  EXPECT_EQ(outputs[0].as<double>()[0], 1);                      // the energy of two springs stretched by 1
  EXPECT_EQ(list(outputs[1]), (std::vector<double>{-1, 0, 1}));  // its gradient
  EXPECT_EQ(list(outputs[2]), (std::vector<double>{1, -1, 0}));  // the first column of the Hessian
}

}  // namespace
}  // namespace superstep::transform
