#include "superstep/op/rows/normalization_gradient.h"

#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/channel_statistics.h"
#include "superstep/op/rows/parts_mean.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

int axis_of(const Attributes& attributes, const Shape& x) {
  return checked_axis(attributes.integer("axis", -1), x.rank(), "attribute 'axis'");
}

Axes range_of_axes(int first, int last) {
  Axes axes(static_cast<std::size_t>(last - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

std::vector<ValueType> infer_layer_gradient(const InferContext& context) {
  require_floating(context, 0, "dY");
  const ValueType& x = context.input(0);
  require_shape(context, 1, "X", x.shape);
  require_same_element(context, 1, "X", 0, "dY");
  const int axis = axis_of(context.attributes, x.shape);
  const Shape normalized(std::vector<std::int64_t>(x.shape.begin() + axis, x.shape.end()));
  require_shape(context, 2, "Scale", normalized);
  const ValueType scale = context.input(2);
  return {x, scale, scale};
}

// With n = (x - mean) / deviation: dx = (g - mean(g) - n mean(g n)) / deviation where g = dy scale.
std::vector<Var> decompose_layer_gradient(const DerivativeContext& context) {
  const Var dy = context.inputs[0], x = context.inputs[1], scale = context.inputs[2];
  const int axis = axis_of(context.attributes, x.shape()), rank = x.shape().rank();
  const Axes line = range_of_axes(axis, rank), lines = range_of_axes(0, axis);
  const Var difference = x - reduce_mean(x, line, true);
  const Var variance = reduce_mean(difference * difference, line, true);
  const Var inverse = reciprocal(sqrt(variance + context.attributes.number("epsilon", 1e-5)));
  const Var normal = difference * inverse, g = dy * cast(scale, x.element());
  const Var dx = (g - reduce_mean(g, line, true) - normal * reduce_mean(g * normal, line, true)) * inverse;
  const auto over_lines = [&](Var y) { return cast(axis == 0 ? y : reduce_sum(y, lines), scale.element()); };
  return {dx, over_lines(dy * normal), over_lines(dy)};
}

Var as_channels(Var value, Var x) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.shape().rank()), 1);
  extents[1] = x.shape()[1];
  return reshape(value, Shape(extents));
}

}  // namespace

LayerNormalizationGradient layer_normalization_gradient(Var dy, Var x, Var scale, std::int64_t axis,
                                                        double epsilon) {
  const Var inputs[] = {dy, x, scale};
  const auto outputs = dy.builder().node("superstep.LayerNormalizationGradient", inputs,
                                         {{"axis", axis}, {"epsilon", epsilon}}, 3);
  return {outputs[0], outputs[1], outputs[2]};
}

// dx = a dy + b x + c with numbers a, b, c of each channel, so that it is one pass over memory.
BatchNormalizationGradient batch_normalization_gradient(Var dy, Var x, Var scale, double epsilon,
                                                        bool over_parts) {
  const ChannelMoments moments = over_parts ? channel_moments_over_parts(x) : channel_moments(x);
  const ChannelSums sums = channel_sums(dy, x, moments.mean);
  const auto count = static_cast<double>(x.shape().element_count() / x.shape()[1]);
  const Var inverse = reciprocal(sqrt(moments.variance + epsilon));
  const Var d_scale = sums.centred_product * inverse;
  const Var a = cast(scale, x.element()) * inverse;
  const auto of_all = [&](Var sum) { return over_parts ? parts_mean_in_f32(sum) : sum; };
  const Var b = -(a * inverse * of_all(d_scale)) * (1 / count);
  const Var c = -(a * of_all(sums.sum)) * (1 / count) - b * moments.mean;
  const Var dx = dy * as_channels(a, x) + (x * as_channels(b, x) + as_channels(c, x));
  return {dx, cast(d_scale, scale.element()), cast(sums.sum, scale.element())};
}

std::span<const Definition> normalization_gradient_operators() {
  static const Definition definitions[] = {
      composite<decompose_layer_gradient>({"superstep.LayerNormalizationGradient", 0, 3, 3, 3},
                                          infer_layer_gradient,
                                          {.elements = Elements::floating,
                                           .work = WorkKind::normalization,
                                           .batch = batch::layer_normalization_gradient}),
  };
  return definitions;
}

}  // namespace superstep::op
