// ONNX's random numbers and optimisers, and the arithmetic of quantisation.
#include <cmath>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/random.h"
#include "superstep/op/product/quantization.h"
#include "superstep/op/training/optimizer.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments_of(const Tensor& tensor) {
  const std::vector<double> list = values(tensor);
  Moments m;
  for (double value : list) m.mean += value / static_cast<double>(list.size());
  for (double value : list)
    m.deviation += (value - m.mean) * (value - m.mean) / static_cast<double>(list.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

constexpr std::int64_t many = 20000;  // errors of a mean are near deviation / 141; five times that is allowed

Function optimizer(const char* op, Attributes attributes, int outputs) {
  return [=](Builder& builder, std::span<const Var> x) { return builder.node(op, x, attributes, outputs); };
}

Tensor one(double value) { return f64({1}, {value}); }

}  // namespace

TEST(RandomUniform, FillsItsRange) {
  const Tensor y = result(OF(random_uniform(b, ElementType::f64, {many}, -1, 3)), {});
  const Moments m = moments_of(y);
  EXPECT_NEAR(m.mean, 1, 0.05);
  EXPECT_NEAR(m.deviation, 4 / std::sqrt(12.0), 0.04);
  for (double value : values(y)) ASSERT_TRUE(value >= -1 && value < 3);
}

TEST(RandomNormal, HasItsMomentsAndDependsOnTheSeedAlone) {
  const Tensor y = result(OF(random_normal(b, ElementType::f64, {many}, 2, 0.5, 7)), {});
  EXPECT_NEAR(moments_of(y).mean, 2, 0.02);
  EXPECT_NEAR(moments_of(y).deviation, 0.5, 0.015);
  expect_equal(y, result(OF(random_normal(b, ElementType::f64, {many}, 2, 0.5, 7)), {}), 0);
  EXPECT_NE(y.at(0), result(OF(random_normal(b, ElementType::f64, {many}, 2, 0.5, 8)), {}).at(0));
}

TEST(RandomNumbers, Refuse) {
  expect_refusal(OF(random_uniform(b, ElementType::f32, {3}, 2, 1)), {}, "attribute 'low' is above 'high'");
  expect_refusal(OF(random_normal(b, ElementType::f32, {3}, 0, -1)), {}, "attribute 'scale' is negative");
  expect_refusal(OF(random_normal(b, ElementType::i32, {3})), {}, "'dtype' must name a floating-point type");
  expect_refusal(OF(random_normal(b, ElementType::f32, {1 << 20, 1 << 20})), {}, "more than 2^34");
}

TEST(Bernoulli, DrawsWithTheProbability) {
  const Tensor p = Tensor::full(ElementType::f64, {many}, 0.3);
  EXPECT_NEAR(moments_of(result(OF(bernoulli(x[0])), {p})).mean, 0.3, 0.017);
  expect_values(result(OF(bernoulli(x[0])), {f64({2}, {0, 1})}), {0, 1});
  expect_refusal(OF(bernoulli(x[0])), {f64({1}, {1.5})}, "input holds 1.5, which is not a probability");
}

TEST(Multinomial, DrawsByUnnormalisedLogProbabilities) {
  const Tensor scores = f64({1, 3}, {std::log(1.0) + 700, std::log(2.0) + 700, std::log(5.0) + 700});
  const Tensor drawn = result(OF(multinomial(x[0], many)), {scores});
  double counts[3] = {};
  for (double value : values(drawn)) counts[static_cast<int>(value)] += 1.0 / many;
  EXPECT_NEAR(counts[0], 0.125, 0.012);
  EXPECT_NEAR(counts[1], 0.25, 0.016);
  EXPECT_NEAR(counts[2], 0.625, 0.018);
  expect_refusal(OF(multinomial(x[0], -1)), {scores}, "attribute 'sample_size' is -1");
}

// The formulas of the ONNX specification, written out for one number.
TEST(OnnxOptimizers, OneStepByHand) {
  const Tensor rate = f64({}, {0.1}), third = i64({}, {3});
  const double g = 0.01 * 2 + 0.5;
  const auto adagrad =
      results(optimizer("Adagrad", {{"decay_factor", 0.1}, {"norm_coefficient", 0.01}, {"epsilon", 1e-3}}, 2),
              {rate, third, one(2), one(0.5), one(4)});
  expect_values(adagrad[0], {2 - 0.1 / 1.3 * g / (std::sqrt(4 + g * g) + 1e-3)}, 1e-14);
  expect_values(adagrad[1], {4 + g * g}, 1e-14);
  const Attributes momentum{
      {"mode", std::string("nesterov")}, {"alpha", 0.9}, {"beta", 0.5}, {"norm_coefficient", 0.01}};
  const auto moved = results(optimizer("Momentum", momentum, 2), {rate, third, one(2), one(0.5), one(4)});
  const double v = 0.9 * 4 + 0.5 * g;
  expect_values(moved[0], {2 - 0.1 * (g + 0.9 * v)}, 1e-14);
  expect_values(moved[1], {v}, 1e-14);
  const auto adam =
      results(optimizer("Adam", {{"norm_coefficient", 0.01}, {"norm_coefficient_post", 0.001}}, 3),
              {rate, third, one(2), one(0.5), one(4), one(9)});
  const double m = 0.9 * 4 + 0.1 * g, h = 0.999 * 9 + 0.001 * g * g;
  const double adjusted = 0.1 * std::sqrt(1 - std::pow(0.999, 3)) / (1 - std::pow(0.9, 3));
  expect_values(adam[0], {(2 - adjusted * m / (std::sqrt(h) + 1e-6)) * 0.999}, 1e-13);
}

TEST(OnnxOptimizers, Refuse) {
  const Tensor rate = f64({}, {0.1}), third = i64({}, {3});
  expect_refusal(optimizer("Adam", {}, 3), {rate, third, one(2), one(0.5), one(4)},
                 "takes rate, update count and 4 inputs a tensor, not 5");
  expect_refusal(optimizer("Adagrad", {}, 2), {rate, third, one(2), f64({2}, {1, 2}), one(4)},
                 "input inputs is f64[2], expected shape [1]");
  expect_refusal(optimizer("Momentum", {{"mode", std::string("heavy")}}, 2),
                 {rate, third, one(2), one(1), one(4)},
                 "attribute 'mode' is 'heavy', expected standard or nesterov");
}

// In f32, 1 - 0.999 is off by 5e-5 of itself; the decomposition that other runtimes get must not be.
TEST(Adam, ItsPlainOnnxFormKeepsItsDigitsInF32) {
  const auto stepped = [](bool decomposed) {
    Tensor p = f64({2}, {1, -0.5}), m = f64({2}, {0, 0}), v = f64({2}, {0, 0});
    for (Tensor* tensor : {&p, &m, &v}) *tensor = tensor->converted(ElementType::f32);
    const Function step = [&](Builder& b, std::span<const Var> x) {
      const AdamStep next = adam(x[0], x[1], x[2], x[3], x[4], x[5], {});
      if (!decomposed) return std::vector{next.parameter, next.m, next.v};
      const graph::Node node = b.graph().nodes().back();
      std::vector<Var> outputs{next.parameter, next.m, next.v};
      return get("superstep.Adam").decompose({b, node.attributes, {x.begin(), x.end()}, outputs});
    };
    for (std::int64_t t = 0; t < 10; ++t) {
      const Tensor gradient = f64({2}, {0.3 * p.at(0) + 0.1, 2 * p.at(1)}).converted(ElementType::f32);
      const auto next =
          results(step, {p, gradient, m, v, i64({}, {t}), f64({}, {0.01}).converted(ElementType::f32)});
      p = next[0], m = next[1], v = next[2];
    }
    return p;
  };
  expect_values(stepped(true), values(stepped(false)), 5e-7);
}

// 0.75 / 0.1 is just below 7.5 for the f32 next to 0.1, 0.85 / 0.1 just above 8.5: both are halves in f32,
// which go to the even neighbour.
TEST(QuantizeLinear, DividesInF32) {
  const Tensor x0 = f64({2}, {0.75, 0.85}).converted(ElementType::f32);
  const Tensor scale = f64({}, {0.1}).converted(ElementType::f32);
  EXPECT_LT(x0.at(0) / scale.at(0), 7.5);
  EXPECT_GT(x0.at(1) / scale.at(0), 8.5);
  expect_values(result(OF(quantize_linear(x[0], x[1], {}, 1)), {x0, scale}), {8, 8});
}

TEST(DynamicQuantizeLinear, FollowsTheSpecificationInF32) {
  // The example of the ONNX specification.
  const Tensor x0 = f64({6}, {0, 2, -3, -2.5, 1.34, 0.5}).converted(ElementType::f32);
  const Function quantize = [](Builder& b, std::span<const Var> x) {
    return b.node("DynamicQuantizeLinear", x, {}, 3);
  };
  const auto outputs = results(quantize, {x0});
  expect_values(outputs[0], {153, 255, 0, 26, 221, 179});
  expect_values(outputs[1], {static_cast<double>(5.0F / 255.0F)});
  expect_values(outputs[2], {153});
}

}  // namespace superstep::op::test
