#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/random.h"
#include "superstep/op/rows/loss.h"
#include "superstep/op/training/optimizer.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

// Minimises f(p) = (p0^2 + 4 p1^2) / 2 from (1, 1): the gradient is (p0, 4 p1).
const Tensor start = f64({2}, {1, 1});

Tensor gradient_at(const Tensor& p) { return f64({2}, {p.at(0), 4 * p.at(1)}); }

}  // namespace

TEST(Sgd, ThreeStepsByHand) {
  Tensor p = start, buffer = f64({2}, {0, 0});
  const Function step = [](Builder&, std::span<const Var> x) {
    const SgdStep next = sgd(x[0], x[1], x[2], x[3], {.momentum = 0.5});
    return std::vector{next.parameter, next.buffer};
  };
  // buffers (1, 4), (1.4, 4.4), (1.46, 2.84); parameters (0.9, 0.6), (0.76, 0.16), (0.614, -0.124).
  for (const auto& expected : {std::vector{0.9, 0.6}, std::vector{0.76, 0.16}, std::vector{0.614, -0.124}}) {
    const auto next = results(step, {p, gradient_at(p), f64({}, {0.1}), buffer});
    expect_values(next[0], expected, 1e-14);
    p = next[0];
    buffer = next[1];
  }
  expect_values(buffer, {1.46, 2.84});
}

TEST(Sgd, NesterovAndWeightDecayByHand) {
  const Function step =
      OF(sgd(x[0], x[1], x[2], x[3], {.momentum = 0.5, .weight_decay = 0.1, .nesterov = true}).parameter);
  // g = 1 + 0.1 = 1.1; buffer 0.5 * 2 + 1.1 = 2.1; direction 1.1 + 1.05.
  expect_values(result(step, {f64({1}, {1}), f64({1}, {1}), f64({}, {0.1}), f64({1}, {2})}), {1 - 0.215});
  expect_values(result(OF(sgd(x[0], x[1], x[2]).parameter), {f64({1}, {1}), f64({1}, {2}), f64({1}, {0.1})}),
                {0.8});
}

TEST(Adam, FirstStepIsTheRateInTheGradientsDirection) {
  const AdamAttributes exact = {.epsilon = 0};
  const Function step = OF(adam(x[0], x[1], x[2], x[3], x[4], x[5], exact).parameter);
  expect_values(result(step, {start, f64({2}, {1e-3, -50}), f64({2}, {0, 0}), f64({2}, {0, 0}), i64({}, {0}),
                              f64({}, {0.1})}),
                {0.9, 1.1});
}

TEST(Adam, ThreeStepsByHand) {
  const AdamAttributes attributes = {.beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-3};
  const Function step = [attributes](Builder&, std::span<const Var> x) {
    const AdamStep next = adam(x[0], x[1], x[2], x[3], x[4], x[5], attributes);
    return std::vector{next.parameter, next.m, next.v};
  };
  Tensor p = start, m = f64({2}, {0, 0}), v = f64({2}, {0, 0});
  double by_hand = 1, m0 = 0, v0 = 0;  // the first parameter, written out
  for (std::int64_t t = 0; t < 3; ++t) {
    const auto next = results(step, {p, gradient_at(p), m, v, i64({}, {t}), f64({}, {0.1})});
    m0 = 0.5 * m0 + 0.5 * by_hand;
    v0 = 0.75 * v0 + 0.25 * by_hand * by_hand;
    const double unbiased_m = m0 / (1 - std::pow(0.5, t + 1)), unbiased_v = v0 / (1 - std::pow(0.75, t + 1));
    by_hand -= 0.1 * unbiased_m / (std::sqrt(unbiased_v) + 1e-3);
    EXPECT_NEAR(next[0].at(0), by_hand, 1e-14);
    p = next[0];
    m = next[1];
    v = next[2];
  }
  EXPECT_LT(p.at(1), 0.75);
}

TEST(Adam, DecoupledDecayShrinksTheParameterAlone) {
  const AdamAttributes attributes = {.weight_decay = 0.5, .decoupled = true};
  const Function step = OF(adam(x[0], x[1], x[2], x[3], x[4], x[5], attributes).parameter);
  const Tensor none = f64({1}, {0});
  expect_values(result(step, {f64({1}, {2}), none, none, none, i64({}, {0}), f64({}, {0.1})}), {1.9});
}

// Kingma and Ba, algorithm 2, written out for the first parameter.
TEST(Adamax, ThreeStepsByHand) {
  const AdamaxAttributes attributes = {.beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-3};
  const Function step = [attributes](Builder&, std::span<const Var> x) {
    const AdamaxStep next = adamax(x[0], x[1], x[2], x[3], x[4], x[5], attributes);
    return std::vector{next.parameter, next.m, next.u};
  };
  Tensor p = start, m = f64({2}, {0, 0}), u = f64({2}, {0, 0});
  double by_hand = 1, m0 = 0, u0 = 0;
  for (std::int64_t t = 0; t < 3; ++t) {
    const auto next = results(step, {p, gradient_at(p), m, u, i64({}, {t}), f64({}, {0.1})});
    m0 = 0.5 * m0 + 0.5 * by_hand;
    u0 = std::max(0.75 * u0, std::abs(by_hand) + 1e-3);
    by_hand -= 0.1 / (1 - std::pow(0.5, t + 1)) * m0 / u0;
    EXPECT_NEAR(next[0].at(0), by_hand, 1e-14);
    EXPECT_NEAR(next[2].at(0), u0, 1e-14);
    p = next[0];
    m = next[1];
    u = next[2];
  }
  EXPECT_LT(p.at(1), 0.75);
}

// The largest gradient of late sets the size of a step: a small one after it moves a tenth as far.
TEST(Adamax, RemembersTheLargestGradient) {
  const Function step = OF(adamax(x[0], x[1], x[2], x[3], x[4], x[5], {.beta1 = 0, .epsilon = 0}).parameter);
  expect_values(result(step, {f64({2}, {1, 1}), f64({2}, {0.1, -5}), f64({2}, {0, 0}),
                              f64({2}, {1 / 0.999, 1}), i64({}, {9}), f64({}, {0.5})}),
                {0.95, 1.5}, 1e-14);
}

// You et al., algorithm 2: the step of a tensor is as long as the rate times the tensor itself.
TEST(Lamb, StepsAreAShareOfTheTensorsLength) {
  const Function step =
      OF(lamb(x[0], x[1], x[2], x[3], x[4], x[5], {.epsilon = 0, .weight_decay = 0.5}).parameter);
  const Tensor none = f64({2}, {0, 0}), first = i64({}, {0}), rate = f64({}, {0.1});
  // The direction of Adam's first step is the sign: (1, -1) + 0.5 (3, 4) = (2.5, 1), of length sqrt(7.25).
  const double ratio = 5 / std::sqrt(7.25);
  expect_values(result(step, {f64({2}, {3, 4}), f64({2}, {7, -1e-3}), none, none, first, rate}),
                {3 - 0.1 * ratio * 2.5, 4 - 0.1 * ratio * 1}, 1e-14);
  // Of a tensor of zeros it is Adam's own step; without a gradient nothing moves but by the decay.
  expect_values(result(step, {none, f64({2}, {7, -1e-3}), none, none, first, rate}), {-0.1, 0.1}, 1e-14);
}

TEST(Lamb, MovesNothingWithoutAGradientOrADecay) {
  const Function step = OF(lamb(x[0], x[1], x[2], x[3], x[4], x[5], {}).parameter);
  const Tensor none = f64({2}, {0, 0});
  expect_values(result(step, {f64({2}, {3, 4}), none, none, none, i64({}, {0}), f64({}, {0.1})}), {3, 4});
}

// The epsilon is under the root, the rate within the momentum.
TEST(Rmsprop, TwoStepsByHand) {
  const RmspropAttributes attributes = {.decay = 0.75, .momentum = 0.5, .epsilon = 0.5};
  const Function step = [attributes](Builder&, std::span<const Var> x) {
    const RmspropStep next = rmsprop(x[0], x[1], x[2], x[3], x[4], attributes);
    return std::vector{next.parameter, next.v, next.buffer};
  };
  // v = 0.75 + 0.25 * 1 = 1; step 0.1 / sqrt(1.5)
  const auto first =
      results(step, {f64({1}, {1}), f64({1}, {1}), f64({1}, {1}), f64({}, {0.1}), f64({1}, {0})});
  const double moved = 0.1 / std::sqrt(1.5);
  expect_values(first[0], {1 - moved}, 1e-14);
  expect_values(first[1], {1}, 1e-14);
  expect_values(first[2], {moved}, 1e-14);
  // Another rate for the second: the first one's stays in the buffer. v = 0.75 + 0.25 * 4 = 1.75.
  const auto second = results(step, {first[0], f64({1}, {-2}), first[1], f64({}, {0.3}), first[2]});
  const double next = 0.5 * moved - 0.6 / std::sqrt(2.25);
  expect_values(second[2], {next}, 1e-14);
  expect_values(second[0], {1 - moved - next}, 1e-14);
  expect_values(result(OF(rmsprop(x[0], x[1], x[2], x[3], {}, {.decay = 0.75, .epsilon = 0.5}).parameter),
                       {f64({1}, {1}), f64({1}, {1}), f64({1}, {1}), f64({}, {0.1})}),
                {1 - moved}, 1e-14);
}

TEST(Optimizer, NarrowGradientsAreWidened) {
  const Tensor p = f64({1}, {1}).converted(ElementType::f32),
               g = f64({1}, {1.0 / 3}).converted(ElementType::bf16);
  const Tensor next =
      result(OF(sgd(x[0], x[1], x[2]).parameter), {p, g, f64({}, {0.5}).converted(ElementType::f32)});
  EXPECT_EQ(next.type(), ElementType::f32);
  EXPECT_FLOAT_EQ(static_cast<float>(next.at(0)), static_cast<float>(1 - 0.5 * g.at(0)));
}

TEST(Optimizer, Refusals) {
  expect_refusal(OF(sgd(x[0], x[1], x[2], {}, {.momentum = 0.9}).parameter), {start, start, f64({}, {0.1})},
                 "superstep.Sgd: input buffer is left out, but attribute 'momentum' is not 0");
  expect_refusal(OF(sgd(x[0], x[1], x[2]).parameter), {start, f64({1}, {0}), f64({}, {0.1})},
                 "superstep.Sgd: input gradient is f64[1], expected shape [2]");
  expect_refusal(OF(adam(x[0], x[0], x[0], x[0], x[1], x[1]).parameter), {start, f64({}, {1})},
                 "superstep.Adam: input step is f64[], expected an integer type");
  expect_refusal(OF(adamax(x[0], x[0], x[0], x[0], x[1], x[1]).parameter), {start, f64({}, {1})},
                 "superstep.Adamax: input step is f64[], expected an integer type");
  expect_refusal(OF(rmsprop(x[0], x[0], x[0], x[1], {}, {.momentum = 0.9}).parameter), {start, f64({}, {1})},
                 "superstep.RMSProp: input buffer is left out, but attribute 'momentum' is not 0");
}

TEST(Loss, CrossEntropyByHand) {
  const Tensor scores = f64({2, 2}, {0, std::log(3), 0, 0}), labels = i64({2}, {1, 0});
  const double first = std::log(4.0 / 3), second = std::log(2);
  expect_values(result(OF(softmax_cross_entropy_loss(x[0], x[1])), {scores, labels}), {(first + second) / 2});
  expect_values(
      result(OF(softmax_cross_entropy_loss(x[0], x[1], {}, {.reduction = "none"})), {scores, labels}),
      {first, second});
  const Tensor weights = f64({2}, {3, 1});
  expect_values(result(OF(softmax_cross_entropy_loss(x[0], x[1], x[2])), {scores, labels, weights}),
                {(first + 3 * second) / 4});
  expect_values(
      result(OF(softmax_cross_entropy_loss(x[0], x[1], {}, {.reduction = "mean", .ignore_index = 0})),
             {scores, labels}),
      {first});
}

TEST(Loss, LikelihoodOfWhatIsNotAskedForDoesNotCount) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  expect_values(result(OF(negative_log_likelihood_loss(x[0], x[1], {}, {.reduction = "sum"})),
                       {f64({2, 2}, {-1, -inf, -inf, -2}), i64({2}, {0, 1})}),
                {3});
  expect_refusal(OF(negative_log_likelihood_loss(x[0], x[1])),
                 {f64({2, 2}, {0, 0, 0, 0}), i64({3}, {0, 1, 0})},
                 "NegativeLogLikelihoodLoss: input target is i64[3], expected shape [2]");
  expect_refusal(OF(negative_log_likelihood_loss(x[0], x[1], {}, {.reduction = "total"})),
                 {f64({1, 2}, {0, 0}), i64({1}, {0})},
                 "attribute 'reduction' is 'total', expected mean, sum or none");
}

TEST(RandomMask, IsAddressedBySampleAndPosition) {
  const RandomMaskAttributes attributes = {.seed = 0x123456789abcdef0, .stream = 7, .keep = 0.25};
  const Tensor mask = result(OF(random_mask(x[0], ElementType::f32, {2, 5}, attributes)),
                             {i64({}, {(std::int64_t{3} << 32) + 2})});
  for (std::uint32_t i = 0; i < 10; ++i) {
    const std::uint32_t sample = i / 5, word = i % 5;
    const auto block = philox({word / 4, 7, 2 + sample, 3}, {0x9abcdef0, 0x12345678});
    EXPECT_EQ(mask.at(i), block[word % 4] < 0x40000000u ? 4.0 : 0.0) << i;
  }
}

TEST(RandomMask, KeepsTheShareItShouldAndDiffersByStep) {
  const auto mask = [](std::int64_t counter, std::uint32_t stream, double keep) {
    return values(
        result(OF(random_mask(x[0], ElementType::f64, {10000}, {1, stream, keep})), {i64({}, {counter})}));
  };
  double total = 0;
  for (double value : mask(0, 0, 0.8)) total += value;
  EXPECT_NEAR(total / 10000, 1, 0.02);  // four standard deviations of sqrt(0.25 / 10000)
  EXPECT_EQ(mask(0, 0, 0.8), mask(0, 0, 0.8));
  EXPECT_NE(mask(0, 0, 0.8), mask(1, 0, 0.8));
  EXPECT_NE(mask(0, 0, 0.8), mask(0, 1, 0.8));
  EXPECT_EQ(mask(0, 0, 1), std::vector<double>(10000, 1.0));
  expect_refusal(OF(random_mask(x[0], ElementType::f32, {2}, {.keep = 0})), {i64({}, {0})},
                 "superstep.RandomMask: attribute 'keep' is 0, expected a probability above 0");
}

// Moments of 2^17 numbers within four standard errors of those of the normal distribution; neighbours, which
// share their radius, are uncorrelated.
TEST(RandomNormal, HasTheMomentsOfTheNormalDistribution) {
  constexpr std::int64_t n = 1 << 17;
  const std::vector<double> x =
      values(result(OF(random_normal(x[0], ElementType::f64, {n / 4, 4}, 1, 0)), {i64({}, {12})}));
  double mean = 0, square = 0, fourth = 0, neighbours = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean += x[i] / n, square += x[i] * x[i] / n, fourth += std::pow(x[i], 4) / n;
    if (i % 2 == 0) neighbours += x[i] * x[i + 1] / (n / 2);
  }
  EXPECT_NEAR(mean, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(square, 1, 4 * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourth, 3, 4 * std::sqrt(96.0 / n));
  EXPECT_NEAR(neighbours, 0, 4 * std::sqrt(2.0 / n));
  expect_refusal(OF(random_normal(x[0], ElementType::i32, {2}, 1, 0)), {i64({}, {0})},
                 "superstep.RandomNormal: attribute 'dtype' must name a floating-point type");
}

TEST(Dropout, ScalesWhatItKeeps) {
  const Function training = [](Builder& b, std::span<const Var> x) {
    const Var inputs[] = {x[0], x[1], b.constant(Tensor::scalar(true))};
    return b.node("Dropout", inputs, {{"seed", std::int64_t{5}}}, 2);
  };
  const auto outputs = results(training, {Tensor::full(ElementType::f64, {1000}, 3), f64({}, {0.4})});
  int kept = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    EXPECT_DOUBLE_EQ(outputs[0].at(i), outputs[1].at(i) != 0 ? 5 : 0);
    kept += outputs[1].at(i) != 0;
  }
  EXPECT_NEAR(kept, 600, 62);
  expect_refusal(training, {start, f64({}, {1})}, "Dropout: input ratio is 1, expected one in [0, 1)");
}

}  // namespace superstep::op::test
