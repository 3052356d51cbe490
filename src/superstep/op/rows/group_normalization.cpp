#include "superstep/op/rows/group_normalization.h"

#include <fmt/format.h>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

double epsilon_of(const Attributes& attributes) { return attributes.number("epsilon", 1e-5); }

Var normalized(Var x, const Axes& axes, double epsilon) {
  const Var difference = x - reduce_mean(x, axes, true);
  return difference / sqrt(reduce_mean(difference * difference, axes, true) + epsilon);
}

std::vector<ValueType> infer_group(const InferContext& context) {
  require_floating(context, 0, "X");
  require_min_rank(context, 0, "X", 2);
  const std::int64_t groups = context.attributes.integer("num_groups");
  const std::int64_t channels = context.input(0).shape[1];
  require(groups >= 1 && channels % groups == 0,
          fmt::format("attribute 'num_groups' is {}, which does not divide {} channels", groups, channels));
  // Operator set 18 had a scale a group, 21 has one a channel.
  const bool by_group = context.input(1).shape == Shape{groups};
  for (std::size_t i : {1u, 2u}) {
    require_floating(context, i, i == 1 ? "scale" : "bias");
    require_shape(context, i, i == 1 ? "scale" : "bias", {by_group ? groups : channels});
  }
  return {context.input(0)};
}

// Every group of a sample as one row; scale and bias as columns of [groups, channels or 1, 1].
std::vector<Var> decompose_group(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const std::int64_t samples = x.shape()[0], groups = context.attributes.integer("num_groups");
  const std::int64_t channels = x.shape()[1] / groups;
  const std::int64_t rest =
      x.shape().element_count() / std::max<std::int64_t>(1, samples * groups * channels);
  const Var rows = reshape(x, {samples, groups, channels, rest});
  const auto column = [&](Var value) {
    return reshape(cast(value, x.element()), {1, groups, value.shape()[0] / groups, 1});
  };
  const Var y = normalized(rows, {2, 3}, epsilon_of(context.attributes)) * column(context.inputs[1]) +
                column(context.inputs[2]);
  return {reshape(y, x.shape())};
}

std::vector<ValueType> infer_rms(const InferContext& context) {
  require_floating(context, 0, "X");
  require_floating(context, 1, "scale");
  const Shape &x = context.input(0).shape, &scale = context.input(1).shape;
  checked_axis(context.attributes.integer("axis", -1), x.rank(), "attribute 'axis'");
  require(checked_broadcast(scale, x, "inputs") == x,
          fmt::format("input scale is {}, expected a shape that broadcasts to {}", to_string(scale),
                      to_string(x)));
  return {context.input(0)};
}

std::vector<Var> decompose_rms(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  Axes axes;
  for (int axis = checked_axis(context.attributes.integer("axis", -1), x.shape().rank());
       axis < x.shape().rank(); ++axis)
    axes.push_back(axis);
  const Var square = reduce_mean(x * x, axes, true);
  return {x / sqrt(square + epsilon_of(context.attributes)) * cast(context.inputs[1], x.element())};
}

std::vector<ValueType> infer_floating(const InferContext& context) {
  require_floating(context, 0, "X");
  return {context.input(0)};
}

std::vector<ValueType> infer_mean_variance(const InferContext& context) {
  checked_axes(context.attributes.integers("axes", {0, 2, 3}), context.input(0).shape.rank(),
               "attribute 'axes'");
  return infer_floating(context);
}

// The ONNX function adds 1e-9 to the standard deviation, not to the variance.
std::vector<Var> decompose_mean_variance(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const Axes axes = context.attributes.integers("axes", {0, 2, 3});
  const Var difference = x - reduce_mean(x, axes, true);
  return {difference / (sqrt(reduce_mean(difference * difference, axes, true)) + 1e-9)};
}

std::vector<ValueType> infer_local_response(const InferContext& context) {
  require_min_rank(context, 0, "X", 2);
  require(context.attributes.integer("size") >= 1, "attribute 'size' must be positive");
  return infer_floating(context);
}

// The squares of `size` neighbours: as many shifted copies of the padded channels, added.
std::vector<Var> decompose_local_response(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const std::int64_t size = context.attributes.integer("size"), channels = x.shape()[1];
  const double alpha = context.attributes.number("alpha", 1e-4),
               beta = context.attributes.number("beta", 0.75);
  const auto rank = static_cast<std::size_t>(x.shape().rank());
  Extents pads(2 * rank, 0);
  pads[1] = (size - 1) / 2;
  pads[rank + 1] = size - 1 - pads[1];
  const Var squares = pad(x * x, pads);
  std::vector<Var> shifted;
  for (std::int64_t i = 0; i < size; ++i) shifted.push_back(slice(squares, {i}, {i + channels}, {1}));
  const Var total = sum(shifted) * (alpha / static_cast<double>(size)) + context.attributes.number("bias", 1);
  return {x / pow(total, beta)};
}

std::vector<ValueType> infer_lp(const InferContext& context) {
  checked_axis(context.attributes.integer("axis", -1), context.input(0).shape.rank(), "attribute 'axis'");
  const std::int64_t p = context.attributes.integer("p", 2);
  require(p == 1 || p == 2, fmt::format("attribute 'p' is {}, expected 1 or 2", p));
  return infer_floating(context);
}

std::vector<Var> decompose_lp(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const Axes axes = {context.attributes.integer("axis", -1)};
  const Var norm =
      context.attributes.integer("p", 2) == 1 ? reduce_l1(x, axes, true) : reduce_l2(x, axes, true);
  // A vector of zeros stays one.
  return {x / where(equal(norm, constant_like(norm, 0)), constant_like(norm, 1), norm)};
}

}  // namespace

Var group_normalization(Var x, Var scale, Var bias, std::int64_t groups, double epsilon) {
  return x.builder().node1("GroupNormalization", {x, scale, bias},
                           {{"num_groups", groups}, {"epsilon", epsilon}});
}
Var rms_normalization(Var x, Var scale, std::int64_t axis, double epsilon) {
  return x.builder().node1("RMSNormalization", {x, scale}, {{"axis", axis}, {"epsilon", epsilon}});
}
Var mean_variance_normalization(Var x, const Extents& axes) {
  return x.builder().node1("MeanVarianceNormalization", {x}, {{"axes", axes}});
}
Var local_response_normalization(Var x, std::int64_t size, double alpha, double beta, double bias) {
  return x.builder().node1("LRN", {x}, {{"size", size}, {"alpha", alpha}, {"beta", beta}, {"bias", bias}});
}
Var lp_normalization(Var x, std::int64_t axis, std::int64_t p) {
  return x.builder().node1("LpNormalization", {x}, {{"axis", axis}, {"p", p}});
}

std::span<const Definition> group_normalization_operators() {
  static const Definition definitions[] = {
      composite<decompose_group>({"GroupNormalization", 21, 3, 3}, infer_group,
                                 {.elements = Elements::floating,
                                  .work = WorkKind::normalization,
                                  .batch = batch::per_picture,
                                  .attributes = "epsilon num_groups stash_type"}),
      composite<decompose_rms>({"RMSNormalization", 23, 2, 2}, infer_rms,
                               {.elements = Elements::floating,
                                .work = WorkKind::normalization,
                                .batch = batch::from_axis_on,
                                .attributes = "axis epsilon stash_type"}),
      composite<decompose_mean_variance>(
          {"MeanVarianceNormalization", 13}, infer_mean_variance,
          {.elements = Elements::floating, .work = WorkKind::normalization, .attributes = "axes"}),
      composite<decompose_local_response>({"LRN", 13}, infer_local_response,
                                          {.elements = Elements::floating,
                                           .work = WorkKind::normalization,
                                           .batch = batch::per_picture,
                                           .attributes = "alpha beta bias size"}),
      composite<decompose_lp>({"LpNormalization", 1}, infer_lp,
                              {.elements = Elements::floating,
                               .work = WorkKind::normalization,
                               .batch = batch::along_axis,
                               .attributes = "axis p"}),
  };
  return definitions;
}

}  // namespace superstep::op
