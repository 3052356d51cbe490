#include "superstep/op/rows/normalization.h"

#include "superstep/op/rows/channel_statistics.h"
#include "superstep/op/rows/normalization_gradient.h"
#include "superstep/op/rows/parts_mean.h"
#include "superstep/op/rows/softmax.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

std::vector<Var> training(Builder&, std::span<const Var> x) {
  const BatchNormalized result = batch_normalization_training(x[0], x[1], x[2], x[3], x[4], 1e-3, 0.8);
  return {result.y, result.running_mean, result.running_variance};
}

std::vector<Var> layer_with_statistics(Builder& b, std::span<const Var> x) {
  return b.node("LayerNormalization", x, {{"axis", std::int64_t{1}}}, 3);
}

std::vector<Var> moments(Builder&, std::span<const Var> x) {
  const ChannelMoments result = channel_moments(x[0]);
  return {result.mean, result.variance};
}

std::vector<Var> sums(Builder&, std::span<const Var> x) {
  const ChannelSums result = channel_sums(x[0], x[1], x[2]);
  return {result.sum, result.centred_product};
}

Function layer_gradient(std::int64_t axis) {
  return [axis](Builder&, std::span<const Var> x) {
    const auto result = layer_normalization_gradient(x[0], x[1], x[2], axis, 1e-3);
    return std::vector<Var>{result.x, result.scale, result.bias};
  };
}

}  // namespace

std::vector<Case> normalization_cases() {
  const Tensor image = random_tensor({2, 3, 4, 2}, 91), matrix = random_tensor({4, 3}, 92);
  const Tensor scale = random_tensor({3}, 93), bias = random_tensor({3}, 94), mean = random_tensor({3}, 95);
  const Tensor variance = uniform_tensor({3}, 96, 0.5, 2), lines = random_tensor({2, 4, 3}, 97);
  const Tensor wide_scale = random_tensor({4, 3}, 98), wide_bias = random_tensor({4, 3}, 99);
  return {
      {"Softmax", "last axis", OF(softmax(x[0])), {lines}},
      {"Softmax", "first axis", OF(softmax(x[0], 0)), {lines}},
      {"LogSoftmax", "last axis", OF(log_softmax(x[0])), {lines}},
      {"LogSoftmax", "middle axis", OF(log_softmax(x[0], 1)), {lines}},
      {"Hardmax", "last axis", OF(hardmax(x[0])), {lines}, Smooth::zero},
      {"BatchNormalization",
       "inference",
       OF(batch_normalization(x[0], x[1], x[2], x[3], x[4])),
       {image, scale, bias, mean, variance}},
      {"BatchNormalization",
       "inference on a matrix",
       OF(batch_normalization(x[0], x[1], x[2], x[3], x[4])),
       {matrix, scale, bias, mean, variance}},
      {"BatchNormalization", "training", training, {image, scale, bias, mean, variance}},
      {"LayerNormalization", "last axis", OF(layer_normalization(x[0], x[1], x[2])), {lines, scale, bias}},
      {"LayerNormalization", "without bias", OF(layer_normalization(x[0], x[1])), {lines, scale}},
      {"LayerNormalization",
       "two axes, statistics",
       layer_with_statistics,
       {lines, wide_scale, wide_bias},
       Smooth::twice,
       false},
      {"superstep.ChannelMoments", "image", moments, {image}},
      {"superstep.ChannelMoments", "matrix", moments, {matrix}},
      {"superstep.ChannelSums", "image", sums, {image, random_tensor({2, 3, 4, 2}, 90), mean}},
      {"superstep.PartsMean", "of one part", OF(parts_mean(x[0])), {mean}},
      {"superstep.LayerNormalizationGradient",
       "last axis",
       layer_gradient(-1),
       {lines, random_tensor({2, 4, 3}, 89), scale}},
      {"superstep.LayerNormalizationGradient",
       "two axes",
       layer_gradient(1),
       {lines, random_tensor({2, 4, 3}, 89), wide_scale}},
      {"InstanceNormalization", "image", OF(instance_normalization(x[0], x[1], x[2])), {image, scale, bias}},
  };
}

}  // namespace superstep::op::test
