#include "tests/op/support.h"

namespace superstep::op::test {

Built build(const Function& function, const std::vector<Tensor>& inputs) {
  Built built{graph::Graph("test"), {}};
  Builder builder(built.graph);
  std::vector<Var> vars;
  for (const Tensor& input : inputs) {
    const bool floating = is_floating(input.type());
    vars.push_back(floating ? builder.input("x", input.type(), input.shape()) : builder.constant(input));
    if (floating) built.inputs.push_back(input);
  }
  int number = 0;
  for (Var output : function(builder, vars)) builder.output("y" + std::to_string(number++), output);
  const Status status = graph::verify(built.graph, infer_types);
  EXPECT_TRUE(status) << status.error().what();
  return built;
}

std::vector<Tensor> results(const Function& function, const std::vector<Tensor>& inputs) {
  const Built built = build(function, inputs);
  return evaluate(built.graph, built.inputs).outputs;
}

Tensor result(const Function& function, const std::vector<Tensor>& inputs) {
  return results(function, inputs).at(0);
}

std::vector<double> values(const Tensor& tensor) {
  std::vector<double> list;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) list.push_back(tensor.at(i));
  return list;
}

void expect_values(const Tensor& tensor, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> found = values(tensor);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size() && !testing::Test::HasFailure(); ++i) {
    if (!std::isfinite(expected[i]))
      EXPECT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i]))) << found[i];
    else
      EXPECT_NEAR(found[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << "element " << i;
  }
}

void expect_equal(const Tensor& a, const Tensor& b, double tolerance) {
  EXPECT_EQ(a.type(), b.type());
  ASSERT_EQ(a.shape(), b.shape());
  expect_values(a, values(b), tolerance);
}

void expect_refusal(const Function& function, const std::vector<Tensor>& inputs, const std::string& text) {
  try {
    results(function, inputs);
    ADD_FAILURE() << "not refused; expected: " << text;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

}  // namespace superstep::op::test
