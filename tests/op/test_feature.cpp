#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

using Numbers = std::vector<double>;

Function node(const char* op, Attributes attributes) {
  return [=](Builder& builder, std::span<const Var> x) { return builder.node(op, x, attributes); };
}

const Tensor rows = f64({2, 3}, {3, -4, 0, 0, 0, 0});

}  // namespace

TEST(Features, ByHand) {
  expect_values(result(node("ArrayFeatureExtractor", {}), {f64({4}, {1, 2, 3, 4}), i64({2}, {3, 1})}),
                {4, 2});
  expect_values(result(node("Binarizer", {{"threshold", -1.0}}), {rows}), {1, 0, 1, 1, 1, 1});
  expect_values(result(node("Normalizer", {{"norm", std::string("L2")}}), {rows}), {0.6, -0.8, 0, 0, 0, 0},
                1e-7);
  expect_values(result(node("Normalizer", {{"norm", std::string("L1")}}), {i64({1, 2}, {1, 3})}),
                {0.25, 0.75});
  expect_values(result(node("Scaler", {{"offset", Numbers{1, 0, -1}}, {"scale", Numbers{2}}}), {rows}),
                {4, -8, 2, -2, 0, 2});
  const Attributes model{{"coefficients", Numbers{1, 1, 1, 2, 0, 0}},
                         {"intercepts", Numbers{10, 20}},
                         {"targets", std::int64_t{2}}};
  expect_values(result(node("LinearRegressor", model), {rows}), {9, 26, 10, 20});
}

TEST(Features, Refuse) {
  expect_refusal(node("Normalizer", {{"norm", std::string("L3")}}), {rows},
                 "attribute 'norm' is 'L3', expected MAX, L1 or L2");
  expect_refusal(node("Scaler", {{"scale", Numbers{1, 2}}}), {rows},
                 "attribute 'scale' has 2 elements, expected 1 or 3");
  expect_refusal(node("Scaler", {{"scale", std::int64_t{2}}}), {rows}, "attribute 'scale' must hold numbers");
  expect_refusal(node("LinearRegressor", {{"coefficients", Numbers{1, 2}}}), {rows},
                 "has 2 elements, expected 1 times 3");
  expect_refusal(node("LinearRegressor",
                      {{"coefficients", Numbers{1, 2, 3}}, {"post_transform", std::string("PROBIT")}}),
                 {rows}, "'post_transform' PROBIT is not supported");
  expect_refusal(node("ArrayFeatureExtractor", {}), {f64({2}, {1, 2}), i64({1}, {5})},
                 "input Y holds 5, expected 0 to 1");
}

}  // namespace superstep::op::test
