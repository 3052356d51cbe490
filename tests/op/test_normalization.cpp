#include <limits>

#include "superstep/op/rows/normalization.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/rows/softmax.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const Tensor image = f64({2, 2, 2}, {1, 3, 0, 0, 5, 7, 4, 8});
const Tensor scale = f64({2}, {2, 1}), bias = f64({2}, {0, 10});

}  // namespace

TEST(Softmax, ByHand) {
  expect_values(result(OF(softmax(x[0])), {f64({2, 2}, {0, std::log(3), 1000, 1000})}),
                {0.25, 0.75, 0.5, 0.5});
  expect_values(result(OF(softmax(x[0], 0)), {f64({2, 1}, {0, -inf})}), {1, 0});
  expect_values(result(OF(log_softmax(x[0])), {f64({1, 2}, {0, -1000})}), {0, -1000});
  expect_values(result(OF(hardmax(x[0])), {f64({2, 3}, {1, 3, 3, 0, -1, -2})}), {0, 1, 0, 1, 0, 0});
  EXPECT_EQ(result(OF(softmax(x[0])), {Tensor(ElementType::f64, {2, 0})}).element_count(), 0);
  expect_refusal(OF(softmax(x[0], 2)), {f64({1, 2}, {0, 0})},
                 "Softmax: attribute 'axis' 2 lies outside [-2, 1]");
}

TEST(Softmax, SumsToOne) {
  const Tensor sums = result(OF(reduce_sum(softmax(x[0], 1), {1})), {random_tensor({3, 50, 2}, 1, 30)});
  expect_values(sums, std::vector<double>(6, 1.0));
}

TEST(BatchNormalization, Inference) {
  const Tensor y = result(OF(batch_normalization(x[0], x[1], x[2], x[3], x[4], 0)),
                          {image, scale, bias, f64({2}, {1, 2}), f64({2}, {4, 1})});
  expect_values(y, {0, 2, 8, 8, 4, 6, 12, 16});
}

TEST(BatchNormalization, Training) {
  const auto outputs = results(
      [](Builder&, std::span<const Var> x) {
        const BatchNormalized n = batch_normalization_training(x[0], x[1], x[2], x[3], x[4], 0, 0.75);
        return std::vector{n.y, n.running_mean, n.running_variance};
      },
      {image, scale, bias, f64({2}, {0, 0}), f64({2}, {1, 1})});
  // Channel means 4 and 3, variances 5 and 11.
  const double r5 = std::sqrt(5), r11 = std::sqrt(11);
  expect_values(outputs[0],
                {-6 / r5, -2 / r5, 10 - 3 / r11, 10 - 3 / r11, 2 / r5, 6 / r5, 10 + 1 / r11, 10 + 5 / r11});
  expect_values(outputs[1], {1, 0.75});
  expect_values(outputs[2], {0.75 + 5.0 / 4, 0.75 + 11.0 / 4});
}

TEST(LayerNormalization, ByHand) {
  const auto outputs = results(
      [](Builder& b, std::span<const Var> x) {
        return b.node("LayerNormalization", x, {{"epsilon", 0.0}}, 3);
      },
      {f64({2, 2}, {1, 3, -2, 4}), scale, bias});
  expect_values(outputs[0], {-2, 11, -2, 11});
  expect_values(outputs[1], {2, 1});
  expect_values(outputs[2], {1, 1.0 / 3});
  EXPECT_EQ(outputs[1].shape(), (Shape{2, 1}));
}

TEST(InstanceNormalization, ByHand) {
  expect_values(result(OF(instance_normalization(x[0], x[1], x[2], 1)), {image, scale, bias}),
                {-2 / std::sqrt(2), 2 / std::sqrt(2), 10, 10, -2 / std::sqrt(2), 2 / std::sqrt(2),
                 10 - 2 / std::sqrt(5), 10 + 2 / std::sqrt(5)});
}

TEST(Normalization, Refusals) {
  expect_refusal(OF(instance_normalization(x[0], x[1], x[2])), {image, f64({3}, {1, 1, 1}), bias},
                 "InstanceNormalization: input scale is f64[3], expected shape [2]");
  expect_refusal(OF(layer_normalization(x[0], x[1])), {image, f64({3}, {1, 1, 1})},
                 "LayerNormalization: inputs of shapes [3] and [2,2,2] cannot be broadcast");
  expect_refusal(OF(layer_normalization(x[0], x[1])), {f64({2}, {1, 2}), f64({2, 2}, {1, 1, 1, 1})},
                 "input Scale is [2,2], expected a shape that broadcasts to [2]");
  expect_refusal(OF(batch_normalization(x[0], x[1], x[2], x[3], x[4])),
                 {image, scale, bias, f64({1}, {0}), bias},
                 "BatchNormalization: input input_mean is f64[1], expected shape [2]");
}

}  // namespace superstep::op::test
