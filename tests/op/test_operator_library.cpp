// Operators of users' libraries: what they compute, their derivatives, and descriptions that are wrong.
#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/op/custom/operator_library.h"
#include "tests/expect_error.h"
#include "tests/op/support.h"

namespace superstep::op {
namespace {

constexpr const char* wiggle = "com.example.Wiggle";

Var apply(Builder& b, Var x, double frequency) { return b.node1(wiggle, {x}, {{"frequency", frequency}}); }

graph::Graph model(double frequency) {
  graph::Graph graph("wiggle");
  Builder b(graph);
  b.output("y", apply(b, b.input("x", ElementType::f32, {2, 3}), frequency));
  value_or_throw(graph::verify(graph, infer_types));
  return graph;
}

TEST(OperatorLibrary, ComputesWhatItsOperatorDoes) {
  load_operators(SUPERSTEP_WIGGLE);
  load_operators(SUPERSTEP_WIGGLE);  // again: nothing
  const std::vector<float> values = {0, 1, -1, 0.5F, 3, 100};
  const std::vector<Tensor> inputs{Tensor::from<float>({2, 3}, values)};
  const Tensor y = evaluate(model(2), inputs).outputs[0];
  ASSERT_EQ(y.shape(), (Shape{2, 3}));
  for (std::int64_t i = 0; i < 6; ++i) {
    const double x = values[static_cast<std::size_t>(i)];
    EXPECT_NEAR(y.at(i), x + std::pow(std::sin(2 * x), 2) / 2, 1e-6 * std::max(1.0, std::abs(x)));
  }
  const std::vector<std::string> names = loaded_operators();
  EXPECT_TRUE(std::ranges::find(names, wiggle) != names.end());
  expect_error(ErrorCode::bad_graph, {"com.example.Wiggle", "the frequency must be above 0"},
               [] { model(-1); });
}

TEST(OperatorLibrary, HasTheGradientOfItsLibrary) {
  load_operators(SUPERSTEP_WIGGLE);
  const Tensor x = Tensor::from<float>({2, 3}, {-0.7F, -0.4F, 0, 0.2F, 0.5F, 3}),
               dy = Tensor::full(ElementType::f32, {2, 3}, 2);
  const Function gradient = [&](Builder& b, std::span<const Var> in) {
    const Attributes attributes{{"frequency", 1.5}};
    const Var y = apply(b, in[0], 1.5);
    const std::vector<Var> cotangents{in[1]};
    return get(wiggle).vjp({.builder = b, .attributes = attributes, .inputs = {in[0]}, .outputs = {y}},
                           cotangents, {true});
  };
  const Tensor dx = test::result(gradient, {x, dy});
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_NEAR(dx.at(i), 2 * (1 + std::sin(2 * 1.5 * x.at(i))), 1e-6);
  EXPECT_EQ(get("com.example.WiggleGradient").vjp, nullptr) << "it has no gradient itself";
}

TEST(OperatorLibrary, WhatIsDescribedWronglyIsNamed) {
  const auto refused = [](const char* library, ErrorCode code, std::initializer_list<std::string> why) {
    expect_error(code, why, [&] { load_operators(library); });
  };
  refused("nowhere.so", ErrorCode::not_found, {"nowhere.so"});
  refused(SUPERSTEP_SOURCE "/README.md", ErrorCode::bad_file, {"README.md", "cannot be loaded"});
  const std::string folder = SUPERSTEP_BROKEN;
  const auto broken = [&](int number) { return folder + "/libbroken" + std::to_string(number) + ".so"; };
  refused(broken(1).c_str(), ErrorCode::bad_file, {"exports no superstep_operators()"});
  refused(broken(2).c_str(), ErrorCode::invalid_argument, {"com.broken.Broken", "another version"});
  refused(broken(3).c_str(), ErrorCode::invalid_argument, {"ai.onnx.ml.Broken", "com.example"});
  refused(broken(4).c_str(), ErrorCode::invalid_argument, {"Two words", "letters"});
  refused(broken(5).c_str(), ErrorCode::invalid_argument, {"takes 1 to 0 inputs"});
  refused(broken(6).c_str(), ErrorCode::invalid_argument, {"no infer or no evaluate"});
  refused(broken(7).c_str(), ErrorCode::invalid_argument, {"com.broken.Absent is not in the library"});
  refused(broken(8).c_str(), ErrorCode::invalid_argument, {"as the gradient of", "takes 3 to 3 inputs"});
  refused(broken(9).c_str(), ErrorCode::bad_file, {"no operators for version"});
  // As a whole or not at all: what stands before the fault is not known either.
  refused(broken(10).c_str(), ErrorCode::invalid_argument, {"com.broken.Twice", "stands twice"});
  EXPECT_FALSE(is_custom("com.broken.First"));
  EXPECT_EQ(find("com.broken.First"), nullptr);
}

}  // namespace
}  // namespace superstep::op
