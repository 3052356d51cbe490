#include "superstep/op/rows/normalization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/normalization_gradient.h"
#include "superstep/op/rows/parts_mean.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

double epsilon_of(const Attributes& attributes) { return attributes.number("epsilon", 1e-5); }

void require_channels(const InferContext& context, std::size_t input, const char* name) {
  require_floating(context, input, name);
  require_shape(context, input, name, {context.input(0).shape[1]});
}

// A number a channel, shaped to broadcast to x, in x's element type.
Var per_channel(Var value, Var x) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.shape().rank()), 1);
  extents[1] = value.shape()[0];
  return reshape(cast(value, x.element()), Shape(extents));
}

struct Centred {
  Var mean, difference, variance;
};

// Mean, x - mean and variance over `axes`, kept; over_parts: and over all parts of the batch.
Centred centred(Var x, const Axes& axes, bool over_parts = false) {
  const auto mean_of = [&](Var value) {
    const Var own = reduce_mean(value, axes, true);
    return over_parts ? parts_mean_in_f32(own) : own;
  };
  const Var mean = mean_of(x), difference = x - mean;
  return {mean, difference, mean_of(difference * difference)};
}

bool is_training(const Attributes& attributes) { return attributes.integer("training_mode", 0) != 0; }

bool is_over_parts(const Attributes& attributes) { return attributes.integer("over_parts", 0) != 0; }

std::vector<ValueType> infer_batch(const InferContext& context) {
  require_floating(context, 0, "X");
  require_min_rank(context, 0, "X", 2);
  static constexpr const char* names[] = {"X", "scale", "B", "input_mean", "input_var"};
  for (std::size_t i = 1; i < 5; ++i) require_channels(context, i, names[i]);
  require_same_element(context, 4, "input_var", 3, "input_mean");
  std::vector<ValueType> types = {context.input(0)};
  if (is_training(context.attributes)) types.insert(types.end(), {context.input(3), context.input(4)});
  return types;
}

Axes all_but_channels(Var x) {
  Axes axes = {0};
  for (int axis = 2; axis < x.shape().rank(); ++axis) axes.push_back(axis);
  return axes;
}

Var mixed(Var running, Var batch, double momentum) {
  return running * momentum + cast(reshape(batch, running.shape()), running.element()) * (1.0 - momentum);
}

std::vector<Var> decompose_batch(const DerivativeContext& context) {
  const Var x = context.inputs[0], running_mean = context.inputs[3], running_variance = context.inputs[4];
  const Var scale = per_channel(context.inputs[1], x), bias = per_channel(context.inputs[2], x);
  const double epsilon = epsilon_of(context.attributes);
  if (!is_training(context.attributes)) {
    const Var factor = scale / sqrt(per_channel(running_variance, x) + epsilon);
    return {(x - per_channel(running_mean, x)) * factor + bias};
  }
  const double momentum = context.attributes.number("momentum", 0.9);
  const Centred batch = centred(x, all_but_channels(x), is_over_parts(context.attributes));
  const Var y = batch.difference * (scale / sqrt(batch.variance + epsilon)) + bias;
  return {y, mixed(running_mean, batch.mean, momentum), mixed(running_variance, batch.variance, momentum)};
}

// With given statistics: (x - mean) * (scale / deviation) + bias, as decomposed, without making a graph of
// it.
void evaluate_batch(const EvaluateContext& context) {
  if (is_training(context.attributes)) return evaluate_through<decompose_batch>(context);
  std::vector<double> x = widen<double>(context.input(0));
  const std::vector<double> scale = widen<double>(context.input(1)), bias = widen<double>(context.input(2)),
                            mean = widen<double>(context.input(3)),
                            variance = widen<double>(context.input(4));
  const double epsilon = epsilon_of(context.attributes);
  const std::size_t channels = scale.size();
  const std::size_t plane =
      x.empty() ? 0 : x.size() / channels / static_cast<std::size_t>(context.input(0).shape()[0]);
  for (std::size_t begin = 0; begin < x.size(); begin += plane) {
    const std::size_t c = begin / plane % channels;
    const double factor = scale[c] / std::sqrt(variance[c] + epsilon);
    for (std::size_t i = begin; i < begin + plane; ++i) x[i] = (x[i] - mean[c]) * factor + bias[c];
  }
  narrow(x, context.output(0));
}

// In training, where nobody asks for more than y's part: by sums over channels that targets have kernels for.
std::vector<Var> vjp_batch(const DerivativeContext& context, std::span<const Var> cotangents,
                           const std::vector<bool>& wanted) {
  const bool of_y_alone =
      cotangents[0].valid() &&
      std::none_of(cotangents.begin() + 1, cotangents.end(), [](Var cotangent) { return cotangent.valid(); });
  if (!is_training(context.attributes) || !of_y_alone)
    return vjp_through(decompose_batch, context, cotangents, wanted);
  const auto found =
      batch_normalization_gradient(cotangents[0], context.inputs[0], context.inputs[1],
                                   epsilon_of(context.attributes), is_over_parts(context.attributes));
  return {found.x, found.scale, found.bias, Var(), Var()};
}

Definition batch_definition() {
  Definition definition =
      composite<decompose_batch>({"BatchNormalization", 15, 5, 5, 3}, infer_batch,
                                 {.elements = Elements::floating,
                                  .work = WorkKind::normalization,
                                  .batch = batch::batch_normalization,
                                  .attributes = "epsilon is_test momentum spatial training_mode",
                                  .f32_since = 13});
  definition.evaluate = evaluate_batch;
  definition.vjp = vjp_batch;
  return definition;
}

Axes axes_from(const Attributes& attributes, const Shape& shape) {
  Axes axes;
  for (int axis = checked_axis(attributes.integer("axis", -1), shape.rank(), "attribute 'axis'");
       axis < shape.rank(); ++axis)
    axes.push_back(axis);
  return axes;
}

void require_broadcasts(const InferContext& context, std::size_t input, const char* name) {
  require_floating(context, input, name);
  const Shape &x = context.input(0).shape, &shape = context.input(input).shape;
  require(checked_broadcast(shape, x, "inputs") == x,
          fmt::format("input {} is {}, expected a shape that broadcasts to {}", name, to_string(shape),
                      to_string(x)));
}

std::vector<ValueType> infer_layer(const InferContext& context) {
  require_floating(context, 0, "X");
  const ValueType& x = context.input(0);
  require_broadcasts(context, 1, "Scale");
  if (context.has(2)) require_broadcasts(context, 2, "B");
  std::vector<std::int64_t> extents = x.shape.extents();
  for (std::int64_t axis : axes_from(context.attributes, x.shape))
    extents[static_cast<std::size_t>(axis)] = 1;
  const ElementType stash = element_attribute(context.attributes, "stash_type", ElementType::f32);
  const ValueType statistics{x.element == ElementType::f64 ? x.element : stash, Shape(extents)};
  return {x, statistics, statistics};
}

std::vector<Var> decompose_layer(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const Centred line = centred(x, axes_from(context.attributes, x.shape()));
  const Var inverse = reciprocal(sqrt(line.variance + epsilon_of(context.attributes)));
  Var y = line.difference * inverse * cast(context.inputs[1], x.element());
  if (context.has(2)) y = y + cast(context.inputs[2], x.element());
  std::vector<Var> result = {y};
  if (context.outputs.size() > 1 && context.outputs[1].valid())
    result.push_back(cast(line.mean, context.outputs[1].element()));
  if (context.outputs.size() > 2 && context.outputs[2].valid()) {
    result.resize(2);
    result.push_back(cast(inverse, context.outputs[2].element()));
  }
  return result;
}

std::vector<Var> vjp_layer(const DerivativeContext& context, std::span<const Var> cotangents,
                           const std::vector<bool>& wanted) {
  const Var x = context.inputs[0], scale = context.inputs[1];
  const Axes axes = axes_from(context.attributes, x.shape());
  std::vector<std::int64_t> normalized;
  for (std::int64_t axis : axes) normalized.push_back(x.shape()[static_cast<int>(axis)]);
  const Shape expected(normalized);
  const bool fits = scale.shape() == expected && (!context.has(2) || context.inputs[2].shape() == expected);
  const bool of_y_alone =
      cotangents[0].valid() &&
      std::none_of(cotangents.begin() + 1, cotangents.end(), [](Var cotangent) { return cotangent.valid(); });
  if (!fits || !of_y_alone) return vjp_through(decompose_layer, context, cotangents, wanted);
  const auto found =
      layer_normalization_gradient(cotangents[0], x, scale, axes.front(), epsilon_of(context.attributes));
  std::vector<Var> result = {found.x, found.scale};
  if (context.has(2)) result.push_back(cast(found.bias, context.inputs[2].element()));
  return result;
}

Definition layer_definition() {
  Definition definition = composite<decompose_layer>({"LayerNormalization", 17, 2, 3, 3}, infer_layer,
                                                     {.elements = Elements::floating,
                                                      .work = WorkKind::normalization,
                                                      .batch = batch::from_axis_on,
                                                      .attributes = "axis epsilon stash_type"});
  definition.vjp = vjp_layer;
  return definition;
}

std::vector<ValueType> infer_instance(const InferContext& context) {
  require_floating(context, 0, "input");
  require_min_rank(context, 0, "input", 3);
  require_channels(context, 1, "scale");
  require_channels(context, 2, "B");
  return {context.input(0)};
}

std::vector<Var> decompose_instance(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  Axes axes;
  for (int axis = 2; axis < x.shape().rank(); ++axis) axes.push_back(axis);
  const Centred plane = centred(x, axes);
  const Var factor =
      per_channel(context.inputs[1], x) / sqrt(plane.variance + epsilon_of(context.attributes));
  return {plane.difference * factor + per_channel(context.inputs[2], x)};
}

}  // namespace

Var batch_normalization(Var x, Var scale, Var bias, Var mean, Var variance, double epsilon) {
  return x.builder().node1("BatchNormalization", {x, scale, bias, mean, variance}, {{"epsilon", epsilon}});
}

BatchNormalized batch_normalization_training(Var x, Var scale, Var bias, Var mean, Var variance,
                                             double epsilon, double momentum, bool over_parts) {
  const Var inputs[] = {x, scale, bias, mean, variance};
  Attributes attributes{{"epsilon", epsilon}, {"momentum", momentum}, {"training_mode", std::int64_t{1}}};
  if (over_parts) attributes.set("over_parts", std::int64_t{1});
  const std::vector<Var> outputs = x.builder().node("BatchNormalization", inputs, attributes, 3);
  return {outputs[0], outputs[1], outputs[2]};
}

Var layer_normalization(Var x, Var scale, Var bias, std::int64_t axis, double epsilon) {
  return x.builder().node1("LayerNormalization", {x, scale, bias}, {{"axis", axis}, {"epsilon", epsilon}});
}

Var instance_normalization(Var x, Var scale, Var bias, double epsilon) {
  return x.builder().node1("InstanceNormalization", {x, scale, bias}, {{"epsilon", epsilon}});
}

std::span<const Definition> normalization_operators() {
  static const Definition definitions[] = {
      batch_definition(),
      layer_definition(),
      composite<decompose_instance>({"InstanceNormalization", 6, 3, 3}, infer_instance,
                                    {.elements = Elements::floating,
                                     .work = WorkKind::normalization,
                                     .batch = batch::per_picture,
                                     .attributes = "epsilon"}),
  };
  return definitions;
}

}  // namespace superstep::op
