#include <limits>

#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST(Unary, ClosedForms) {
  expect_values(result(OF(-x[0]), {f64({3}, {1, -2, 0})}), {-1, 2, 0});
  expect_values(result(OF(sign(x[0])), {f64({4}, {3, -2, 0, nan})}), {1, -1, 0, nan});
  expect_values(result(OF(round(x[0])), {f64({5}, {0.5, 1.5, 2.5, -0.5, -1.6})}), {0, 2, 2, 0, -2});
  expect_values(result(OF(floor(x[0]) + ceil(x[0])), {f64({2}, {1.5, -1.5})}), {3, -3});
  expect_values(result(OF(exp(log(x[0]))), {f64({2}, {0.1, 7})}), {0.1, 7});
  expect_values(result(OF(sqrt(x[0])), {f64({3}, {9, 0, -1})}), {3, 0, nan});
  expect_values(result(OF(reciprocal(x[0])), {f64({2}, {4, 0})}), {0.25, inf});
  expect_values(result(OF(erf(x[0])), {f64({1}, {0.5})}), {0.5204998778130465});
}

TEST(Unary, SmallestIntegerIsNegatedWithoutOverflow) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(result(OF(-x[0]), {i64({1}, {least})}).as<std::int64_t>()[0], least);
  EXPECT_EQ(result(OF(abs(x[0])), {i64({1}, {least})}).as<std::int64_t>()[0], least);
}

TEST(Unary, RefusesOtherElementTypes) {
  expect_refusal(OF(exp(x[0])), {i64({2}, {1, 2})}, "Exp: input X is i64[2], expected a floating-point type");
  expect_refusal(OF(-x[0]), {booleans({1}, {1})}, "Neg: input X is bool[1], expected a numeric type");
}

TEST(Arithmetic, BroadcastsAsNumpy) {
  expect_values(result(OF(x[0] - x[1]), {f64({2, 1}, {10, 20}), f64({3}, {1, 2, 3})}), {9, 8, 7, 19, 18, 17});
  expect_refusal(OF(x[0] + x[1]), {f64({2}, {1, 2}), f64({3}, {1, 2, 3})},
                 "Add: inputs of shapes [2] and [3] cannot be broadcast together");
  expect_refusal(OF(x[0] * x[1]), {f64({1}, {1}), i64({1}, {1})},
                 "Mul: input B is i64[1], expected f64 like A");
}

TEST(Arithmetic, IntegersWrapAndDivideTowardZero) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(), least = -most - 1;
  expect_values(result(OF(x[0] / x[1]), {i64({4}, {7, -7, 7, 5}), i64({4}, {2, 2, -2, 0})}), {3, -3, -3, 0});
  EXPECT_EQ(result(OF(x[0] + x[1]), {i64({1}, {most}), i64({1}, {1})}).as<std::int64_t>()[0], least);
  EXPECT_EQ(result(OF(x[0] / x[1]), {i64({1}, {least}), i64({1}, {-1})}).as<std::int64_t>()[0], least);
  const Tensor bytes = i64({2}, {200, 100}).converted(ElementType::u8);
  expect_values(result(OF(x[0] + x[0]), {bytes}), {144, 200});
}

TEST(Arithmetic, PowersOfIntegers) {
  expect_values(result(OF(pow(x[0], x[1])), {i64({5}, {2, -3, 5, 1, 2}), i64({5}, {10, 3, 0, -4, -1})}),
                {1024, -27, 1, 1, 0});
  expect_values(result(OF(pow(x[0], x[1])), {i64({2}, {4, 9}), f64({}, {0.5})}), {2, 3});
}

TEST(Arithmetic, ExtremesOfNaN) {
  expect_values(result(OF(min(x[0], x[1])), {f64({3}, {1, nan, 3}), f64({3}, {2, 0, nan})}), {1, nan, nan});
  expect_values(result(OF(max(x[0], x[1])), {f64({3}, {1, nan, 3}), f64({3}, {2, 0, nan})}), {2, nan, nan});
}

TEST(Arithmetic, TiesShareTheDerivative) {
  graph::Graph graph;
  Builder builder(graph);
  const Var a = builder.input("a", ElementType::f64, {2}), b = builder.input("b", ElementType::f64, {2});
  const Var y = max(a, b);
  const Attributes none;
  const auto& definition = get("Max");
  const std::vector<Var> one = {builder.constant(f64({2}, {1, 1}))};
  const auto cotangents = definition.vjp(DerivativeContext{builder, none, {a, b}, {y}}, one, {true, true});
  builder.output("da", cotangents[0]);
  const Tensor inputs[] = {f64({2}, {3, 1}), f64({2}, {3, 2})};
  expect_values(evaluate(graph, inputs).outputs[0], {0.5, 0});
}

TEST(Logic, Truth) {
  const Tensor a = booleans({4}, {0, 0, 1, 1}), b2 = booleans({4}, {0, 1, 0, 1});
  expect_values(result(OF(logical_and(x[0], x[1])), {a, b2}), {0, 0, 0, 1});
  expect_values(result(OF(logical_or(x[0], x[1])), {a, b2}), {0, 1, 1, 1});
  expect_values(result(OF(logical_xor(x[0], x[1])), {a, b2}), {0, 1, 1, 0});
  expect_values(result(OF(logical_not(x[0])), {a}), {1, 1, 0, 0});
  expect_values(result(OF(equal(x[0], x[1])), {a, b2}), {1, 0, 0, 1});
  expect_refusal(OF(logical_and(x[0], x[1])), {a, i64({4}, {1, 1, 1, 1})},
                 "And: input B is i64[4], expected bool");
  expect_refusal(OF(greater(x[0], x[1])), {a, b2}, "Greater: input A is bool[4], expected a numeric type");
}

TEST(Logic, ComparisonsOfLargeIntegersAreExact) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;
  expect_values(result(OF(less(x[0], x[1])), {i64({1}, {large - 1}), i64({1}, {large})}), {1});
  expect_values(result(OF(is_nan(x[0])), {f64({3}, {nan, inf, 0})}), {1, 0, 0});
  const Tensor limits = f64({3}, {inf, -inf, nan});
  expect_values(result(OF(b.node1("IsInf", {x[0]}, {{"detect_negative", std::int64_t{0}}})), {limits}),
                {1, 0, 0});
}

TEST(Logic, WhereKeepsInfinitiesOut) {
  expect_values(
      result(OF(where(x[0], x[1], x[2])), {booleans({2}, {1, 0}), f64({2}, {1, inf}), f64({2}, {nan, 4})}),
      {1, 4});
  // The derivative of the branch not taken is zero, though log(0) has none.
  const Function safe_log = OF(where(greater(x[0], x[0] * 0.0), log(x[0]), x[0]));
  expect_refusal(OF(where(x[0], x[0], x[0])), {f64({1}, {1})},
                 "Where: input condition is f64[1], expected bool");
  EXPECT_TRUE(check_gradients(safe_log, std::vector{f64({1}, {2})}));
}

TEST(Cast, RoundsOnceAndSaturates) {
  const Tensor numbers = f64({5}, {2.7, -2.7, 300, -1e30, nan});
  expect_values(result(OF(cast(x[0], ElementType::i8)), {numbers}), {2, -2, 127, -128, 0});
  expect_values(result(OF(cast(x[0], ElementType::boolean)), {f64({3}, {0, -0.5, nan})}), {0, 1, 1});
  expect_values(result(OF(cast(x[0], ElementType::u8)), {i64({2}, {-1, 300})}), {255, 44});
  // Halfway between two bf16, and a little more: rounding through f32 first would lose the little.
  const double halfway = 1 + 0x1p-8 + 0x1p-40;
  expect_values(result(OF(cast(x[0], ElementType::bf16)), {f64({1}, {halfway})}), {1 + 0x1p-7});
  EXPECT_EQ(round_to_odd(1.0), 1.0f);
  expect_refusal(OF(b.node1("Cast", {x[0]}, {{"to", std::int64_t{8}}})), {numbers},
                 "attribute 'to' is ONNX element type 8, which is not a numeric type supported here");
  expect_refusal(OF(b.node1("Cast", {x[0]})), {numbers}, "Cast: attribute 'to' is missing");
}

TEST(Cast, NumbersOfOnnxElementTypesAreOneToOne) {
  for (ElementType type : all_element_types) EXPECT_EQ(element_type_from_onnx(onnx_number(type)), type);
  EXPECT_EQ(onnx_number(ElementType::f32), 1);
  EXPECT_EQ(onnx_number(ElementType::i64), 7);
  EXPECT_EQ(onnx_number(ElementType::bf16), 16);
  EXPECT_FALSE(element_type_from_onnx(8));
}

TEST(Activation, ClosedForms) {
  const Tensor x3 = f64({3}, {-2, 0, 2});
  expect_values(result(OF(relu(x[0])), {x3}), {0, 0, 2});
  expect_values(result(OF(leaky_relu(x[0], 0.1)), {x3}), {-0.2, 0, 2});
  expect_values(result(OF(sigmoid(x[0])), {x3}), {1 / (1 + std::exp(2)), 0.5, 1 / (1 + std::exp(-2))});
  expect_values(result(OF(softplus(x[0])), {f64({3}, {0, 800, -800})}), {std::log(2), 800, 0});
  expect_values(result(OF(softsign(x[0])), {x3}), {-2.0 / 3, 0, 2.0 / 3});
  expect_values(result(OF(elu(x[0], 2)), {x3}), {2 * std::expm1(-2), 0, 2});
  expect_values(result(OF(celu(x[0], 2)), {x3}), {2 * std::expm1(-1), 0, 2});
  expect_values(result(OF(selu(x[0], 2, 3)), {x3}), {6 * std::expm1(-2), 0, 6});
  expect_values(result(OF(hard_sigmoid(x[0])), {f64({3}, {-3, 1, 3})}), {0, 0.7, 1});
  expect_values(result(OF(hard_swish(x[0])), {f64({3}, {-4, 1, 4})}), {0, 2.0 / 3, 4});
  expect_values(result(OF(gelu(x[0])), {f64({2}, {1, -40})}), {0.8413447460685429, 0});
  expect_values(result(OF(gelu(x[0], true)), {f64({1}, {1})}), {0.8411919906082768});
  expect_values(result(OF(mish(x[0])), {f64({1}, {1})}), {std::tanh(std::log1p(std::exp(1)))});
  expect_values(result(OF(thresholded_relu(x[0], 1.5)), {f64({3}, {1, 1.5, 2})}), {0, 0, 2});
  expect_values(result(OF(shrink(x[0], 0.5, 1)), {x3}), {-1.5, 0, 1.5});
  expect_values(result(OF(swish(x[0], 2)), {f64({1}, {1})}), {1 / (1 + std::exp(-2))});
}

TEST(Activation, ClipTakesTheUpperLimitWhereLimitsCross) {
  expect_values(result(OF(clip(x[0], 2, 1)), {f64({3}, {0, 1.5, 3})}), {1, 1, 1});
  expect_refusal(OF(clip(x[0], x[1], Var())), {f64({2}, {0, 1}), f64({2}, {0, 1})},
                 "Clip: input min is f64[2], expected one element");
  expect_refusal(OF(prelu(x[0], x[1])), {f64({1}, {0}), f64({2}, {0, 1})},
                 "PRelu: input slope has shape [2], expected one that broadcasts to X's [1]");
}

TEST(Activation, DerivativeOfReluAtZeroIsZero) {
  graph::Graph graph;
  Builder builder(graph);
  const Var x = builder.input("x", ElementType::f64, {1}), y = relu(x);
  const std::vector<Var> one = {builder.constant(f64({1}, {1}))};
  const Attributes none;
  builder.output("dx", get("Relu").vjp(DerivativeContext{builder, none, {x}, {y}}, one, {true})[0]);
  expect_values(evaluate(graph, std::vector{f64({1}, {0})}).outputs[0], {0});
}

}  // namespace superstep::op::test
