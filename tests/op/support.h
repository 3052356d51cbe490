// What the tests of operators share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/graph/verify.h"
#include "superstep/op/definition.h"
#include "superstep/op/evaluate.h"
#include "superstep/op/gradient_check.h"

namespace superstep::op::test {

inline Tensor f64(Shape shape, std::vector<double> values) { return Tensor::from(std::move(shape), values); }
inline Tensor i64(Shape shape, std::vector<std::int64_t> values) {
  return Tensor::from(std::move(shape), values);
}

// Normal numbers, the same for one seed.
inline Tensor random_tensor(Shape shape, std::uint64_t seed, double scale = 1, double shift = 0) {
  RandomStream random(seed, 99);
  Tensor tensor(ElementType::f64, std::move(shape));
  for (double& value : tensor.as<double>()) value = scale * random.normal() + shift;
  return tensor;
}

// The results of a function on tensors; integer inputs are constants of the graph, the others its inputs.
inline std::vector<Tensor> results(const Function& function, const std::vector<Tensor>& inputs) {
  graph::Graph graph("test");
  Builder builder(graph);
  std::vector<Var> vars;
  std::vector<Tensor> given;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool floating = is_floating(inputs[i].type());
    vars.push_back(floating ? builder.input("x" + std::to_string(i), inputs[i].type(), inputs[i].shape())
                            : builder.constant(inputs[i]));
    if (floating) given.push_back(inputs[i]);
  }
  int number = 0;
  for (Var output : function(builder, vars)) builder.output("y" + std::to_string(number++), output);
  const Status status = graph::verify(graph, infer_types);
  EXPECT_TRUE(status) << status.error().what();
  return evaluate(graph, given).outputs;
}
inline Tensor result(const Function& function, const std::vector<Tensor>& inputs) {
  return results(function, inputs).at(0);
}

inline Function unary(Var (*function)(Var)) {
  return [function](Builder&, std::span<const Var> x) { return std::vector{function(x[0])}; };
}
inline Function binary(Var (*function)(Var, Var)) {
  return [function](Builder&, std::span<const Var> x) { return std::vector{function(x[0], x[1])}; };
}
// A function given as an expression of the inputs x[0], x[1], ...
#define OF(expression)                                                        \
  [=]([[maybe_unused]] Builder& b, [[maybe_unused]] std::span<const Var> x) { \
    return std::vector<Var>{expression};                                      \
  }

inline std::vector<double> values(const Tensor& tensor) {
  std::vector<double> list;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) list.push_back(tensor.at(i));
  return list;
}

inline void expect_values(const Tensor& tensor, const std::vector<double>& expected,
                          double tolerance = 1e-14) {
  ASSERT_EQ(tensor.element_count(), static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(tensor.at(static_cast<std::int64_t>(i)), expected[i],
                tolerance * std::max(1.0, std::abs(expected[i])))
        << "element " << i;
}

inline void expect_equal(const Tensor& a, const Tensor& b, double tolerance = 1e-13) {
  EXPECT_EQ(a.type(), b.type());
  ASSERT_EQ(a.shape(), b.shape());
  expect_values(a, values(b), tolerance);
}

inline void expect_gradients(const Function& function, const std::vector<Tensor>& inputs,
                             GradientCheckOptions options = {}) {
  const Status status = check_gradients(function, inputs, options);
  EXPECT_TRUE(status) << status.error().what();
}
inline void expect_second_order(const Function& function, const std::vector<Tensor>& inputs) {
  expect_gradients(function, inputs, {.tolerance = 2e-6, .directions = 2, .second_order = true});
}

// Building the function must be refused with a message that holds `text`.
inline void expect_refusal(const Function& function, const std::vector<Tensor>& inputs,
                           const std::string& text) {
  try {
    results(function, inputs);
    ADD_FAILURE() << "not refused; expected: " << text;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

// The results of an operator must be those of its decomposition: `function` must make one node.
void expect_decomposition(const Function& function, const std::vector<Tensor>& inputs,
                          double tolerance = 1e-12);

// A function whose derivative is off by 0.1 %: the value of `right`, with the derivative of `right` times
// 1.001. The checker must see it.
void expect_negative_control(const Function& right, const std::vector<Tensor>& inputs);

}  // namespace superstep::op::test
