#include "superstep/op/rows/softmax.h"

#include <cmath>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

int axis_of(const Attributes& attributes, const Shape& shape) {
  return checked_axis(attributes.integer("axis", -1), shape.rank(), "attribute 'axis'");
}

std::vector<ValueType> infer_softmax(const InferContext& context) {
  require_floating(context, 0, "input");
  axis_of(context.attributes, context.input(0).shape);
  return {context.input(0)};
}

// Calls body(elements, count, stride) for every line along the axis.
template <class Body>
void for_each_line(std::vector<double>& x, const Shape& shape, int axis, Body&& body) {
  std::vector<std::int64_t> strides = shape.row_major_strides(), outer = shape.extents();
  const std::int64_t stride = strides[static_cast<std::size_t>(axis)];
  outer[static_cast<std::size_t>(axis)] = shape[axis] ? 1 : 0;
  for_each_strided(Shape(outer), strides, 0,
                   [&](std::int64_t, std::int64_t start) { body(x.data() + start, shape[axis], stride); });
}

double largest(const double* line, std::int64_t count, std::int64_t stride) {
  double result = line[0];
  for (std::int64_t i = 1; i < count; ++i) result = std::max(result, line[i * stride]);
  return result;
}

void softmax_line(double* line, std::int64_t count, std::int64_t stride) {
  const double shift = largest(line, count, stride);
  double total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += line[i * stride] = std::exp(line[i * stride] - shift);
  for (std::int64_t i = 0; i < count; ++i) line[i * stride] /= total;
}

void log_softmax_line(double* line, std::int64_t count, std::int64_t stride) {
  const double shift = largest(line, count, stride);
  double total = 0;
  for (std::int64_t i = 0; i < count; ++i) total += std::exp(line[i * stride] - shift);
  for (std::int64_t i = 0; i < count; ++i) line[i * stride] -= shift + std::log(total);
}

// Where ArgMax finds it: the first of equals, and NaN before any number.
void hardmax_line(double* line, std::int64_t count, std::int64_t stride) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < count; ++i) {
    const double candidate = line[i * stride], champion = line[best * stride];
    if (candidate > champion || (std::isnan(candidate) && !std::isnan(champion))) best = i;
  }
  for (std::int64_t i = 0; i < count; ++i) line[i * stride] = i == best ? 1.0 : 0.0;
}

template <auto Line>
void evaluate_lines(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  std::vector<double> values = widen<double>(context.input(0));
  for_each_line(values, shape, axis_of(context.attributes, shape), Line);
  narrow(values, context.output(0));
}

// The Jacobian diag(y) - y y' is symmetric: one rule for both modes.
Var softmax_derivative(const DerivativeContext& context, Var t) {
  const Var y = context.outputs[0], product = t * y;
  return product - y * reduce_sum(product, {axis_of(context.attributes, y.shape())}, true);
}

std::vector<Var> vjp_softmax(const DerivativeContext& context, std::span<const Var> cotangents,
                             const std::vector<bool>&) {
  return {softmax_derivative(context, cotangents[0])};
}
std::vector<Var> jvp_softmax(const DerivativeContext& context, std::span<const Var> tangents) {
  return {softmax_derivative(context, tangents[0])};
}

std::vector<Var> vjp_log_softmax(const DerivativeContext& context, std::span<const Var> cotangents,
                                 const std::vector<bool>&) {
  const Var y = context.outputs[0], t = cotangents[0];
  return {t - exp(y) * reduce_sum(t, {axis_of(context.attributes, y.shape())}, true)};
}
std::vector<Var> jvp_log_softmax(const DerivativeContext& context, std::span<const Var> tangents) {
  const Var y = context.outputs[0], t = tangents[0];
  return {t - reduce_sum(t * exp(y), {axis_of(context.attributes, y.shape())}, true)};
}

// A maximum, a difference, an exponential, a sum and a quotient an element.
double softmax_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  return 5.0 * static_cast<double>(inputs[0].shape.element_count());
}

// One where the place is that of the largest.
std::vector<Var> decompose_hardmax(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const int axis = axis_of(context.attributes, x.shape());
  if (x.shape().element_count() == 0) return {x};
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.shape().rank()), 1);
  shape[static_cast<std::size_t>(axis)] = x.shape()[axis];
  Tensor places(ElementType::i64, Shape(shape));
  for (std::int64_t i = 0; i < places.element_count(); ++i) places.set(i, static_cast<double>(i));
  return {cast(equal(argmax(x, axis, true), context.builder.constant(places)), x.element())};
}

}  // namespace

Var softmax(Var x, std::int64_t axis) { return x.builder().node1("Softmax", {x}, {{"axis", axis}}); }
Var log_softmax(Var x, std::int64_t axis) { return x.builder().node1("LogSoftmax", {x}, {{"axis", axis}}); }
Var hardmax(Var x, std::int64_t axis) { return x.builder().node1("Hardmax", {x}, {{"axis", axis}}); }

std::span<const Definition> softmax_operators() {
  static const Definition definitions[] = {
      {.name = "Softmax",
       .since_opset = 13,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::normalization,
                  .batch = batch::along_axis,
                  .attributes = "axis"},
       .infer = infer_softmax,
       .flops = softmax_flops,
       .evaluate = evaluate_lines<softmax_line>,
       .vjp = vjp_softmax,
       .jvp = jvp_softmax},
      {.name = "LogSoftmax",
       .since_opset = 13,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::normalization,
                  .batch = batch::along_axis,
                  .attributes = "axis"},
       .infer = infer_softmax,
       .flops = softmax_flops,
       .evaluate = evaluate_lines<log_softmax_line>,
       .vjp = vjp_log_softmax,
       .jvp = jvp_log_softmax},
      {.name = "Hardmax",
       .since_opset = 13,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::normalization,
                  .batch = batch::along_axis,
                  .attributes = "axis"},
       .infer = infer_softmax,
       .evaluate = evaluate_lines<hardmax_line>,
       .vjp = zero_vjp,
       .jvp = zero_jvp,
       .decompose = decompose_hardmax},
  };
  return definitions;
}

}  // namespace superstep::op
