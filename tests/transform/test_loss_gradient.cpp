// The terms of a loss and their gradients, for who moves the parameters by a rule of his own.
#include <gtest/gtest.h>

#include "superstep/op/core/evaluate.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/product/matmul.h"
#include "superstep/transform/training/loss_gradient.h"
#include "tests/expect_error.h"

namespace superstep::transform {
namespace {

// y = x a of [2, 1] by [1, 1], and z = x b.
graph::Graph two_lines() {
  graph::Graph graph("lines");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {2, 1});
  b.output("y", op::matmul(x, b.state("a", Tensor::full(ElementType::f32, {1, 1}, 3))));
  b.output("z", op::matmul(x, b.state("b", Tensor::full(ElementType::f32, {1, 1}, 5))));
  return graph;
}

const std::vector<LossTerm> terms = {{.kind = LossKind::mse, .output = "y", .target = "s", .weight = 7},
                                     {.kind = LossKind::l1, .output = "z", .target = "t", .weight = 1}};

TEST(LossGradient, IsThatOfTheWeightedSum) {
  const graph::Graph made = make_loss_gradient(two_lines(), terms);
  const Tensor column = Tensor::from<float>({2, 1}, {1, 2}), ones = Tensor::full(ElementType::f32, {2, 1}, 1);
  const std::vector<Tensor> inputs = {column, ones, ones, Tensor::scalar<float>(10),
                                      Tensor::scalar<float>(100)};
  const op::Evaluation found = op::evaluate(made, inputs);
  ASSERT_EQ(made.outputs().size(), 4U);
  EXPECT_EQ(made.outputs()[2].name, "gradient/a");
  EXPECT_EQ(made.value(made.inputs()[3]).name, "weight/0");
  // y - s = 2, 5 and z - t = 4, 9: without the weights of the training, and with those that are given.
  EXPECT_NEAR(found.outputs[0].at(0), 14.5, 1e-6);
  EXPECT_NEAR(found.outputs[1].at(0), 6.5, 1e-6);
  EXPECT_NEAR(found.outputs[2].at(0), 10 * (2 * 1 + 5 * 2), 1e-4);
  EXPECT_NEAR(found.outputs[3].at(0), 100 * 1.5, 1e-4);
  EXPECT_EQ(made.updates().size(), 0U) << "nothing is updated";
  EXPECT_EQ(make_loss_gradient(two_lines(), terms, {.gradients = false}).outputs().size(), 2U);
}

TEST(LossGradient, RefusesWhatCannotBe) {
  expect_error(ErrorCode::invalid_argument, {"the loss has no terms"},
               [] { make_loss_gradient(two_lines(), {}); });
  expect_error(ErrorCode::invalid_argument, {"no such output", "yy"},
               [] { make_loss_gradient(two_lines(), {{.kind = LossKind::mse, .output = "yy"}}); });
  graph::Graph fixed("fixed");
  op::Builder b(fixed);
  b.output("y", b.input("x", ElementType::f32, {2, 1}) * 2.0);
  expect_error(ErrorCode::invalid_argument, {"depends on no parameter"},
               [&] { make_loss_gradient(fixed, {LossTerm{}}); });
}

}  // namespace
}  // namespace superstep::transform
