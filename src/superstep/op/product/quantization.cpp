#include "superstep/op/product/quantization.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/quantized.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

// The shape in which scales broadcast to x: a scalar, one a slice of an axis, or one a block of an axis.
Shape scale_shape(const Attributes& attributes, const Shape& x, const Shape& scale) {
  if (scale.element_count() == 1 && scale.rank() <= 1) return {};
  const int axis = checked_axis(attributes.integer("axis", 1), x.rank(), "attribute 'axis'");
  const std::int64_t block = attributes.integer("block_size", 0);
  if (block > 0) {
    Extents expected = x.extents();
    auto& extent = expected[static_cast<std::size_t>(axis)];
    extent = (extent + block - 1) / block;
    require(scale == Shape(expected), fmt::format("input scale is {}, expected {} for blocks of {}",
                                                  to_string(scale), to_string(Shape(expected)), block));
    return scale;
  }
  require(scale == Shape{x[axis]},
          fmt::format("input scale is {}, expected one element or [{}]", to_string(scale), x[axis]));
  Extents extents(static_cast<std::size_t>(x.rank()), 1);
  extents[static_cast<std::size_t>(axis)] = x[axis];
  return Shape(extents);
}

// A scale or zero point for every element.
std::vector<double> everywhere(const Attributes& attributes, const Tensor& values, const Shape& x) {
  const Shape shape = scale_shape(attributes, x, values.shape());
  const std::int64_t block = attributes.integer("block_size", 0);
  if (block == 0 || shape.rank() == 0) return widen_to<double>(values.reshaped(shape), x);
  const auto axis = static_cast<std::size_t>(checked_axis(attributes.integer("axis", 1), x.rank()));
  const std::vector<double> blocks = widen<double>(values);
  const Extents strides = x.row_major_strides();
  std::vector<double> result(static_cast<std::size_t>(x.element_count()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    const std::int64_t along = position / strides[axis] % x[static_cast<int>(axis)];
    const std::int64_t outer = position / (strides[axis] * x[static_cast<int>(axis)]);
    const std::int64_t flat =
        (outer * shape[static_cast<int>(axis)] + along / block) * strides[axis] + position % strides[axis];
    result[i] = blocks[static_cast<std::size_t>(flat)];
  }
  return result;
}

void check_zero_point(const InferContext& context) {
  if (context.has(2)) require_shape(context, 2, "zero_point", context.input(1).shape);
  scale_shape(context.attributes, context.input(0).shape, context.input(1).shape);
}

std::vector<ValueType> infer_quantize(const InferContext& context) {
  require_numeric(context, 0, "x");
  require_floating(context, 1, "y_scale");
  check_zero_point(context);
  const ElementType otherwise = element_attribute(context.attributes, "output_dtype", ElementType::u8);
  const ElementType element = context.has(2) ? context.input(2).element : otherwise;
  if (!is_integer(element))
    throw Error(ErrorCode::unsupported, fmt::format("quantizing to {} is not supported", name_of(element)));
  return {{element, context.input(0).shape}};
}

// x / scale as ONNX has it: a division in f32, unless x is in f64 or of integers. Halves that this rounding
// makes are halves to the integer rounding that follows.
double scaled(double x, double scale, ElementType element) {
  if (!is_floating(element) || element == ElementType::f64) return x / scale;
  return static_cast<double>(static_cast<float>(x) / static_cast<float>(scale));
}

void evaluate_quantize(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const ElementType element = context.input(0).type();
  std::vector<double> x = widen<double>(context.input(0));
  const std::vector<double> scale = everywhere(context.attributes, context.input(1), shape);
  const std::vector<double> zero = context.has(2) ? everywhere(context.attributes, context.input(2), shape)
                                                  : std::vector<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::nearbyint(scaled(x[i], scale[i], element)) + zero[i];
  narrow_limited(x, context.output(0));
}

std::vector<ValueType> infer_dequantize(const InferContext& context) {
  require_integer(context, 0, "x");
  require_floating(context, 1, "x_scale");
  check_zero_point(context);
  return {{context.input(1).element, context.input(0).shape}};
}

void evaluate_dequantize(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  std::vector<double> x = widen<double>(context.input(0));
  const std::vector<double> scale = everywhere(context.attributes, context.input(1), shape);
  const std::vector<double> zero = context.has(2) ? everywhere(context.attributes, context.input(2), shape)
                                                  : std::vector<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (x[i] - zero[i]) * scale[i];
  narrow(x, context.output(0));
}

// A value a slice or block, shaped like x or so that it broadcasts to it.
Var spread_out(const DerivativeContext& context, Var value) {
  const Shape& x = context.inputs[0].shape();
  const Shape shape = scale_shape(context.attributes, x, value.shape());
  const std::int64_t block = context.attributes.integer("block_size", 0);
  if (block == 0 || shape.rank() == 0) return reshape(value, shape);
  const int axis = checked_axis(context.attributes.integer("axis", 1), x.rank());
  Extents repeated = shape.extents(), joined = shape.extents(), split = shape.extents();
  split.insert(split.begin() + axis + 1, 1);
  repeated.insert(repeated.begin() + axis + 1, block);
  joined[static_cast<std::size_t>(axis)] *= block;
  const Var copies = reshape(expand(reshape(value, Shape(split)), Shape(repeated)), Shape(joined));
  return slice(copies, {0}, {x[axis]}, {axis});
}

std::vector<Var> decompose_dequantize(const DerivativeContext& context) {
  const ElementType element = context.inputs[1].element();
  Var x = cast(context.inputs[0], element);
  if (context.has(2)) x = x - cast(spread_out(context, context.inputs[2]), element);
  return {x * spread_out(context, context.inputs[1])};
}

// To u8, with the scale that maps [min(x, 0), max(x, 0)] to [0, 255].
std::vector<ValueType> infer_dynamic(const InferContext& context) {
  require_floating(context, 0, "x");
  return {{ElementType::u8, context.input(0).shape}, {context.input(0).element, {}}, {ElementType::u8, {}}};
}

// In f32 from step to step, as ONNX defines it; the scale is rounded to x's type first.
template <class T>
void evaluate_dynamic_in(const EvaluateContext& context) {
  std::vector<double> x = widen<double>(context.input(0));
  T low = 0, high = 0;
  for (double value : x) {
    const auto x_value = static_cast<T>(value);  // NaN stays: the scale shows it
    if (x_value < low || std::isnan(x_value)) low = x_value;
    if (x_value > high || std::isnan(x_value)) high = x_value;
  }
  const T range = high - low;
  Tensor rounded(context.input(0).type(), {});
  rounded.set(0, static_cast<double>((range == 0 ? T{1} : range) / T{255}));
  const auto scale = static_cast<T>(rounded.at(0));
  const T zero = std::nearbyint(std::clamp(-low / scale, T{0}, T{255}));
  for (double& value : x) value = static_cast<double>(std::nearbyint(static_cast<T>(value) / scale) + zero);
  if (context.wants(0)) narrow_limited(x, context.output(0));
  if (context.wants(1)) context.output(1).set(0, static_cast<double>(scale));
  if (context.wants(2)) context.output(2).set(0, static_cast<double>(zero));
}

void evaluate_dynamic(const EvaluateContext& context) {
  if (context.input(0).type() == ElementType::f64)
    evaluate_dynamic_in<double>(context);
  else
    evaluate_dynamic_in<float>(context);
}

// The same steps: in f64 of f64, else in f32.
std::vector<Var> decompose_dynamic(const DerivativeContext& context) {
  const ElementType given = context.inputs[0].element(),
                    type = given == ElementType::f64 ? ElementType::f64 : ElementType::f32;
  const Var x = cast(context.inputs[0], type), none = constant_like(x, 0);
  const Var low = min(reduce_min(x), none), high = max(reduce_max(x), none), range = high - low;
  const Var whole = where(equal(range, none), constant_like(x, 1), range);
  const Var scale = cast(whole / 255.0, given), divisor = cast(scale, type);
  const Var zero = round(min(max(-low / divisor, none), constant_like(x, 255)));
  const Var y = round(x / divisor) + zero;  // a conversion to bytes stays within their range
  return {cast(y, ElementType::u8), scale, cast(zero, ElementType::u8)};
}

std::vector<ValueType> infer_straight(const InferContext& context) {
  require_floating(context, 0, "x");
  require_same_element(context, 1, "y", 0, "x");
  require_shape(context, 1, "y", context.input(0).shape);
  require_boolean(context, 2, "passes");
  require_shape(context, 2, "passes", context.input(0).shape);
  return {context.input(1)};
}

void evaluate_straight(const EvaluateContext& context) {
  context.input(1).copy_to(context.output(0).bytes());
}

std::vector<Var> decompose_straight(const DerivativeContext& context) { return {context.inputs[1]}; }

Var where_it_passes(const DerivativeContext& context, Var slope) {
  return where(context.inputs[2], slope, constant_like(slope, 0));
}

std::vector<Var> vjp_straight(const DerivativeContext& context, std::span<const Var> cotangents,
                              const std::vector<bool>&) {
  std::vector<Var> result = no_cotangents(context);
  if (cotangents[0].valid()) result[0] = where_it_passes(context, cotangents[0]);
  return result;
}

std::vector<Var> jvp_straight(const DerivativeContext& context, std::span<const Var> tangents) {
  return {tangents[0].valid() ? where_it_passes(context, tangents[0]) : Var()};
}

}  // namespace

Var quantize_linear(Var x, Var scale, Var zero_point, std::int64_t axis) {
  return x.builder().node1("QuantizeLinear", {x, scale, zero_point}, {{"axis", axis}});
}
Var dequantize_linear(Var q, Var scale, Var zero_point, std::int64_t axis) {
  return q.builder().node1("DequantizeLinear", {q, scale, zero_point}, {{"axis", axis}});
}

Var straight_through(Var x, Var y, Var passes) {
  return x.builder().node1("superstep.StraightThrough", {x, y, passes});
}

std::span<const Definition> quantization_operators() {
  static const Definition definitions[] = {
      {.name = "QuantizeLinear",
       .since_opset = 21,
       .min_inputs = 2,
       .max_inputs = 3,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::elementwise,
                  .batch = batch::quantization,
                  .attributes = "axis block_size output_dtype precision saturate"},
       .infer = infer_quantize,
       .evaluate = evaluate_quantize,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
      {.name = "DequantizeLinear",
       .since_opset = 21,
       .min_inputs = 2,
       .max_inputs = 3,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::elementwise,
                  .batch = batch::quantization,
                  .attributes = "axis block_size output_dtype"},
       .infer = infer_dequantize,
       .evaluate = evaluate_dequantize,
       .vjp = vjp_through<decompose_dequantize>,
       .jvp = jvp_through<decompose_dequantize>,
       .decompose = decompose_dequantize},
      {.name = "DynamicQuantizeLinear",
       .since_opset = 11,
       .min_outputs = 3,
       .max_outputs = 3,
       .traits = {.elements = Elements::floating, .work = WorkKind::elementwise},
       .infer = infer_dynamic,
       .evaluate = evaluate_dynamic,
       .decompose = decompose_dynamic},
      {.name = "superstep.StraightThrough",
       .since_opset = 0,
       .min_inputs = 3,
       .max_inputs = 3,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::elementwise,
                  .batch = batch::elementwise,
                  .constants = Variation::elementwise,
                  .elementwise = true},
       .infer = infer_straight,
       .evaluate = evaluate_straight,
       .vjp = vjp_straight,
       .jvp = jvp_straight,
       .decompose = decompose_straight},
  };
  return definitions;
}

}  // namespace superstep::op
