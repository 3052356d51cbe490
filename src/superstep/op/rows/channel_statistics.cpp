#include "superstep/op/rows/channel_statistics.h"

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/parts_mean.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

Axes all_but_channels(const Shape& shape) {
  Axes axes = {0};
  for (int axis = 2; axis < shape.rank(); ++axis) axes.push_back(axis);
  return axes;
}

Var per_channel(Var value, int rank) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank), 1);
  extents[1] = value.shape()[0];
  return reshape(value, Shape(extents));
}

std::vector<ValueType> two_of_channels(const InferContext& context) {
  const ValueType& x = context.input(0);
  const ValueType channels{x.element, Shape{x.shape[1]}};
  return {channels, channels};
}

std::vector<ValueType> infer_moments(const InferContext& context) {
  require_floating(context, 0, "X");
  require_min_rank(context, 0, "X", 2);
  return two_of_channels(context);
}

std::vector<ValueType> infer_sums(const InferContext& context) {
  require_floating(context, 0, "A");
  require_min_rank(context, 0, "A", 2);
  require_shape(context, 1, "B", context.input(0).shape);
  require_same_element(context, 1, "B", 0, "A");
  require_shape(context, 2, "centre", {context.input(0).shape[1]});
  require_same_element(context, 2, "centre", 0, "A");
  return two_of_channels(context);
}

std::vector<Var> decompose_moments(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const Axes axes = all_but_channels(x.shape());
  const Var mean = reduce_mean(x, axes, true), difference = x - mean;
  const Shape channels{x.shape()[1]};
  return {reshape(mean, channels), reduce_mean(difference * difference, axes)};
}

std::vector<Var> decompose_sums(const DerivativeContext& context) {
  const Var a = context.inputs[0], b = context.inputs[1];
  const Axes axes = all_but_channels(a.shape());
  const Var centred = b - per_channel(context.inputs[2], b.shape().rank());
  return {reduce_sum(a, axes), reduce_sum(a * centred, axes)};
}

}  // namespace

ChannelMoments channel_moments(Var x) {
  const auto outputs = x.builder().node("superstep.ChannelMoments", std::span(&x, 1), {}, 2);
  return {outputs[0], outputs[1]};
}

// By the parts' own variances about their own means: the mean of squares less the square of the mean would
// cancel.
ChannelMoments channel_moments_over_parts(Var x) {
  const ChannelMoments own = channel_moments(x);
  const Var mean = parts_mean_in_f32(own.mean), away = own.mean - mean;
  return {mean, parts_mean_in_f32(own.variance + away * away)};
}

ChannelSums channel_sums(Var a, Var b, Var centre) {
  const Var inputs[] = {a, b, centre};
  const auto outputs = a.builder().node("superstep.ChannelSums", inputs, {}, 2);
  return {outputs[0], outputs[1]};
}

std::span<const Definition> channel_statistics_operators() {
  static const Definition definitions[] = {
      composite<decompose_moments>(
          {"superstep.ChannelMoments", 0, 1, 1, 2}, infer_moments,
          {.elements = Elements::floating, .work = WorkKind::reduction, .batch = batch::channel_moments}),
      composite<decompose_sums>(
          {"superstep.ChannelSums", 0, 3, 3, 2}, infer_sums,
          {.elements = Elements::floating, .work = WorkKind::reduction, .batch = batch::channel_sums}),
  };
  return definitions;
}

}  // namespace superstep::op
