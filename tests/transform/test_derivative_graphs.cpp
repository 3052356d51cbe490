// Derivatives of whole graphs against closed forms.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/graph/text.h"
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/trigonometry.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/transform/training/derivative_graphs.h"

namespace superstep::transform {
namespace {

using op::Builder;
using op::Var;

Tensor column(std::vector<double> values) {
  return Tensor::from<double>({static_cast<std::int64_t>(values.size())}, values);
}

const std::vector<std::string> by_x = {"x"};

// f = x'Ax / 2 + b'x with A = [2 1; 1 3]; A is a state, an unused integer input stands beside.
graph::Graph quadratic() {
  graph::Graph graph("quadratic");
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f64, {2});
  builder.input("labels", ElementType::i64, {2});
  const Var a = builder.state("a", Tensor::from<double>({2, 2}, {2, 1, 1, 3}));
  const Var b = builder.constant(column({1, -1}), "b");
  builder.output("f", op::reduce_sum(x * op::matmul(a, x)) * 0.5 + op::reduce_sum(b * x));
  builder.output("x squared", x * x);
  return graph;
}

// y = sin(x) * z element by element, and the whole part of z beside.
graph::Graph wave() {
  graph::Graph graph("wave");
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f64, {3}), z = builder.input("z", ElementType::f64, {3});
  builder.output("y", op::sin(x) * z);
  builder.output("whole", op::floor(z));
  return graph;
}

Tensor output_of(const graph::Graph& graph, const std::string& name, const std::vector<Tensor>& inputs) {
  const Status status = graph::verify(graph, op::infer_types);
  EXPECT_TRUE(status) << status.error().what();
  const auto outputs = op::evaluate(graph, inputs).outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (graph.outputs()[i].name == name) return outputs[i];
  ADD_FAILURE() << "no output " << name;
  return {};
}

void expect_near(const Tensor& tensor, const std::vector<double>& expected) {
  ASSERT_EQ(tensor.element_count(), static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(tensor.at(static_cast<std::int64_t>(i)), expected[i], 1e-13) << "element " << i;
}

template <class Make>
void expect_refusal(Make&& make, ErrorCode code, const std::string& text) {
  try {
    make();
    ADD_FAILURE() << "not refused: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

const Tensor labels = Tensor::from<std::int64_t>({2}, {0, 1});

}  // namespace

TEST(GradientGraph, OfAQuadratic) {
  const graph::Graph derivative = gradient_graph(quadratic(), "f", std::vector<std::string>{"x", "a"});
  const std::vector<Tensor> at = {column({1, 2}), labels};
  expect_near(output_of(derivative, "f", at), {0.5 * (2 + 4 + 12) - 1});
  expect_near(output_of(derivative, "gradient/x", at), {2 + 2 + 1, 1 + 6 - 1});  // A x + b
  expect_near(output_of(derivative, "gradient/a", at), {0.5, 1, 1, 2});          // x x' / 2
}

TEST(GradientGraph, IsAGraphLikeAnyOtherAndReadsBackFromText) {
  const graph::Graph derivative = gradient_graph(quadratic(), "f", by_x);
  const auto again = graph::parse(graph::to_text(derivative));
  ASSERT_TRUE(again) << again.error().what();
  expect_near(output_of(*again, "gradient/x", {column({1, 2}), labels}), {5, 6});
}

TEST(GradientGraph, IsZerosWhereNothingDepends) {
  graph::Graph graph("constant");
  Builder builder(graph);
  builder.input("x", ElementType::f64, {2});
  builder.output("f", builder.scalar(ElementType::f64, 3) * 1.0);
  expect_near(output_of(gradient_graph(graph, "f", by_x), "gradient/x", {column({1, 2})}), {0, 0});
}

TEST(VjpGraph, OfAWave) {
  const graph::Graph derivative = vjp_graph(wave(), std::vector<std::string>{"x", "z"});
  const std::vector<Tensor> inputs = {column({0, 1, 2}), column({3, 4, 5}), column({1, 10, 100}),
                                      column({7, 7, 7})};
  expect_near(output_of(derivative, "gradient/x", inputs), {3, 40 * std::cos(1.0), 500 * std::cos(2.0)});
  expect_near(output_of(derivative, "gradient/z", inputs), {0, 10 * std::sin(1.0), 100 * std::sin(2.0)});
}

TEST(JvpGraph, OfAWave) {
  const graph::Graph derivative = jvp_graph(wave(), std::vector<std::string>{"x", "z"});
  const std::vector<Tensor> inputs = {column({0, 1, 2}), column({3, 4, 5}), column({1, 10, 100}),
                                      column({2, 2, 2})};
  expect_near(output_of(derivative, "tangent/y", inputs),
              {3, 40 * std::cos(1.0) + 2 * std::sin(1.0), 500 * std::cos(2.0) + 2 * std::sin(2.0)});
  expect_near(output_of(derivative, "tangent/whole", inputs), {0, 0, 0});
}

TEST(HessianVectorProductGraph, OfAQuadraticIsTheMatrix) {
  const graph::Graph derivative = hessian_vector_product_graph(quadratic(), "f", by_x);
  for (const auto& [vector, product] : {std::pair{std::vector<double>{1, 0}, std::vector<double>{2, 1}},
                                        std::pair{std::vector<double>{-1, 2}, std::vector<double>{0, 5}}})
    expect_near(output_of(derivative, "hessian/x", {column({9, -4}), labels, column(vector)}), product);
}

TEST(DerivativeGraphs, Refuse) {
  const auto gradient_by = [](const char* output, const char* name) {
    return [=] { gradient_graph(quadratic(), output, std::vector<std::string>{name}); };
  };
  expect_refusal(gradient_by("f", "y"), ErrorCode::not_found, "has no input or state 'y'");
  expect_refusal(gradient_by("g", "x"), ErrorCode::not_found, "has no output 'g'");
  expect_refusal(gradient_by("f", "labels"), ErrorCode::invalid_argument,
                 "'labels' is not an input or state of floating-point");
  expect_refusal(gradient_by("f", "b"), ErrorCode::invalid_argument, "'b' is not an input or state");
  expect_refusal(gradient_by("x squared", "x"), ErrorCode::invalid_argument,
                 "a gradient is of one floating-point number");
  expect_refusal([] { jvp_graph(quadratic(), {}); }, ErrorCode::invalid_argument,
                 "needs a name to be taken by");
}

}  // namespace superstep::transform
