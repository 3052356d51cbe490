// Products of quantised tensors. Sums of products of bytes are exact in f64 (and so is anything up to 2^53),
// so that the reference computes them with the floating-point operators.
#include <fmt/format.h>

#include <cmath>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/quantized.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/product/quantization.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;
using Make = Var (*)(Builder&, const EvaluateContext&);

Tensor in_f64(const Tensor& tensor) { return tensor.converted(ElementType::f64); }

Var input(Builder& builder, const EvaluateContext& context, std::size_t i) {
  return builder.constant(in_f64(context.input(i)));
}

// A zero point or scale, one a row (axis -2) or column (axis -1) of matrices, or a channel; or one for all.
Var shaped(Builder& builder, const Tensor& values, Shape shape) {
  return builder.constant(in_f64(values).reshaped(values.element_count() == 1 ? Shape{} : std::move(shape)));
}

std::vector<double> evaluated(const EvaluateContext& context, Make make) {
  Graph graph("quantized product");
  Builder builder(graph);
  builder.output("y", make(builder, context));
  return widen<double>(evaluate(graph, {}).outputs[0]);
}

bool is_byte(ElementType element) { return element == ElementType::u8 || element == ElementType::i8; }

void require_byte(const InferContext& context, std::size_t i, const char* name) {
  require(is_byte(context.input(i).element),
          fmt::format("input {} is {}, expected u8 or i8", name, to_string(context.input(i))));
}

// The zero point of matrix rows (`axis` rank - 2) or columns: a scalar, a vector, or full with that axis
// kept.
Shape line_shape(const Tensor& zero, const Shape& matrix, int axis) {
  if (zero.shape().rank() > 1) return zero.shape();
  Extents extents(static_cast<std::size_t>(matrix.rank()), 1);
  extents[static_cast<std::size_t>(axis)] = zero.element_count();
  return Shape(extents);
}

Var centred_matrix(Builder& builder, const EvaluateContext& context, std::size_t i, std::size_t zero,
                   int axis_from_end) {
  const Var x = input(builder, context, i);
  if (!context.has(zero)) return x;
  const Shape shape = context.input(i).shape();
  const int axis = shape.rank() - axis_from_end;
  if (axis < 0) return x - shaped(builder, context.input(zero), {});
  return x - shaped(builder, context.input(zero), line_shape(context.input(zero), shape, axis));
}

ValueType product_type(const InferContext& context, std::size_t a, std::size_t b, ElementType element) {
  Graph graph("shapes");
  Builder builder(graph);
  const Var left = builder.input("a", ElementType::f64, context.input(a).shape);
  const Var right = builder.input("b", ElementType::f64, context.input(b).shape);
  return {element, matmul(left, right).shape()};
}

ValueType convolution_type(const InferContext& context, std::size_t x, std::size_t w, ElementType element) {
  const ConvGeometry g = conv_geometry(context.attributes, context.input(x).shape, context.input(w).shape);
  Extents extents = {g.batch, g.group * g.out_per_group};
  for (const Window& window : g.windows) extents.push_back(window.output);
  return {element, Shape(extents)};
}

std::vector<ValueType> infer_matmul_integer(const InferContext& context) {
  require_byte(context, 0, "A");
  require_byte(context, 1, "B");
  return {product_type(context, 0, 1, ElementType::i32)};
}

void evaluate_matmul_integer(const EvaluateContext& context) {
  narrow_limited(evaluated(context,
                           [](Builder& builder, const EvaluateContext& c) {
                             return matmul(centred_matrix(builder, c, 0, 2, 2),
                                           centred_matrix(builder, c, 1, 3, 1));
                           }),
                 context.output(0));
}

std::vector<ValueType> infer_conv_integer(const InferContext& context) {
  require_byte(context, 0, "x");
  require_byte(context, 1, "w");
  return {convolution_type(context, 0, 1, ElementType::i32)};
}

Var centred_weights(Builder& builder, const EvaluateContext& context, std::size_t w, std::size_t zero) {
  const Var x = input(builder, context, w);
  if (!context.has(zero)) return x;
  return x -
         shaped(builder, context.input(zero), line_shape(context.input(zero), context.input(w).shape(), 0));
}

void evaluate_conv_integer(const EvaluateContext& context) {
  narrow_limited(
      evaluated(context,
                [](Builder& builder, const EvaluateContext& c) {
                  Var x = input(builder, c, 0);
                  if (c.has(2)) x = x - shaped(builder, c.input(2), {});
                  return builder.node1("Conv", {x, centred_weights(builder, c, 1, 3)}, c.attributes);
                }),
      context.output(0));
}

// Of both operands and of the result, in QLinearMatMul and QLinearConv.
void require_scales(const InferContext& context) {
  for (std::size_t i : {1u, 4u, 6u}) require_floating(context, i, "scale");
}

// QLinearMatMul: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
std::vector<ValueType> infer_qlinear_matmul(const InferContext& context) {
  require_byte(context, 0, "a");
  require_byte(context, 3, "b");
  require_byte(context, 7, "y_zero_point");
  require_scales(context);
  return {product_type(context, 0, 3, context.input(7).element)};
}

Var requantized(Builder& builder, Var y, Var scale, const Tensor& zero) {
  return builder.node1("Round", {y * scale}) + shaped(builder, zero, {zero.element_count()});
}

void evaluate_qlinear_matmul(const EvaluateContext& context) {
  narrow_limited(
      evaluated(
          context,
          [](Builder& builder, const EvaluateContext& c) {
            const Var y = matmul(centred_matrix(builder, c, 0, 2, 2), centred_matrix(builder, c, 3, 5, 1));
            const int rank = y.shape().rank();
            const auto line = [&](std::size_t i, int from_end) {
              return shaped(builder, c.input(i),
                            rank < from_end ? Shape{} : line_shape(c.input(i), y.shape(), rank - from_end));
            };
            const Var scale =
                line(1, 2) * line(4, 1) / shaped(builder, c.input(6), {c.input(6).element_count()});
            return requantized(builder, y, scale, c.input(7));
          }),
      context.output(0));
}

// QLinearConv: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, B.
std::vector<ValueType> infer_qlinear_conv(const InferContext& context) {
  require_byte(context, 0, "x");
  require_byte(context, 3, "w");
  require_byte(context, 7, "y_zero_point");
  require_scales(context);
  if (context.has(8)) require_shape(context, 8, "B", {context.input(3).shape[0]});
  return {convolution_type(context, 0, 3, context.input(7).element)};
}

void evaluate_qlinear_conv(const EvaluateContext& context) {
  narrow_limited(evaluated(context,
                           [](Builder& builder, const EvaluateContext& c) {
                             const Var x = input(builder, c, 0) - shaped(builder, c.input(2), {});
                             const Var w = centred_weights(builder, c, 3, 5);
                             const Var bias = c.has(8) ? input(builder, c, 8) : Var();
                             const Var y = builder.node1("Conv", {x, w, bias}, c.attributes);
                             const Shape channels = line_shape(c.input(4), y.shape(), 1);
                             const Var scale = shaped(builder, c.input(1), {}) *
                                               shaped(builder, c.input(4), channels) /
                                               shaped(builder, c.input(6), {});
                             return requantized(builder, y, scale, c.input(7));
                           }),
                 context.output(0));
}

// ---- as products of integers, whose sums are scaled in f64 and rounded once

Var shaped_var(Var x, Shape shape) {
  return reshape(x, x.shape().element_count() == 1 ? Shape{} : std::move(shape));
}

// A vector along one axis of a result of this shape; what has more axes as it is.
Shape line_of(Var values, const Shape& result, int axis) {
  if (values.shape().rank() > 1 || axis < 0) return values.shape();
  Extents extents(static_cast<std::size_t>(result.rank()), 1);
  extents[static_cast<std::size_t>(axis)] = values.shape().element_count();
  return Shape(extents);
}

Var scale_along(Var scale, const Shape& result, int axis) {
  const Var wide = cast(scale, ElementType::f64);
  return shaped_var(wide, line_of(wide, result, axis));
}

// A conversion to bytes stays within their range.
Var scaled_sums(Var sums, Var scale, Var zero) {
  const Var rounded = sums.builder().node1("Round", {cast(sums, ElementType::f64) * scale});
  const Var shift = cast(zero, ElementType::f64);
  return cast(rounded + shaped_var(shift, {shift.shape().element_count()}), zero.element());
}

std::vector<Var> decompose_qlinear_matmul(const DerivativeContext& context) {
  const auto& in = context.inputs;
  const Var sums = context.builder.node1("MatMulInteger", {in[0], in[3], in[2], in[5]});
  const int rank = sums.shape().rank();
  const Var scale = scale_along(in[1], sums.shape(), rank - 2) * scale_along(in[4], sums.shape(), rank - 1) /
                    shaped_var(cast(in[6], ElementType::f64), {in[6].shape().element_count()});
  return {scaled_sums(sums, scale, in[7])};
}

std::vector<Var> decompose_qlinear_conv(const DerivativeContext& context) {
  const auto& in = context.inputs;
  Var sums = context.builder.node1("ConvInteger", {in[0], in[3], in[2], in[5]}, context.attributes);
  if (context.has(8)) sums = sums + reshape(in[8], line_of(in[8], sums.shape(), 1));
  const Var scale = scale_along(in[1], sums.shape(), -1) * scale_along(in[4], sums.shape(), 1) /
                    shaped_var(cast(in[6], ElementType::f64), {});
  return {scaled_sums(sums, scale, in[7])};
}

double matmul_flops(std::span<const ValueType> a, const ValueType& y) {
  const Shape& shape = a[0].shape;
  return 2.0 * static_cast<double>(y.shape.element_count()) * static_cast<double>(shape[shape.rank() - 1]);
}

double flops_matmul(const Attributes&, std::span<const ValueType> inputs,
                    std::span<const ValueType> outputs) {
  return matmul_flops(inputs, outputs[0]);
}
double flops_conv(const Attributes& attributes, std::span<const ValueType> inputs,
                  std::span<const ValueType>) {
  return conv_flops(conv_geometry(attributes, inputs[0].shape, inputs[1].shape));
}
double flops_qlinear_conv(const Attributes& attributes, std::span<const ValueType> inputs,
                          std::span<const ValueType>) {
  return conv_flops(conv_geometry(attributes, inputs[0].shape, inputs[3].shape));
}

}  // namespace

std::span<const Definition> quantized_product_operators() {
  static const Definition definitions[] = {
      {.name = "MatMulInteger",
       .since_opset = 10,
       .min_inputs = 2,
       .max_inputs = 4,
       .traits = {.elements = Elements::bytes, .work = WorkKind::product, .batch = batch::matmul},
       .infer = infer_matmul_integer,
       .flops = flops_matmul,
       .evaluate = evaluate_matmul_integer},
      {.name = "ConvInteger",
       .since_opset = 10,
       .min_inputs = 2,
       .max_inputs = 4,
       .traits = {.elements = Elements::bytes,
                  .work = WorkKind::product,
                  .batch = batch::windowed,
                  .attributes = "auto_pad dilations group kernel_shape pads strides"},
       .infer = infer_conv_integer,
       .flops = flops_conv,
       .evaluate = evaluate_conv_integer},
      {.name = "QLinearMatMul",
       .since_opset = 21,
       .min_inputs = 8,
       .max_inputs = 8,
       .traits = {.elements = Elements::bytes, .work = WorkKind::product},
       .infer = infer_qlinear_matmul,
       .flops = flops_matmul,
       .evaluate = evaluate_qlinear_matmul,
       .decompose = decompose_qlinear_matmul},
      {.name = "QLinearConv",
       .since_opset = 10,
       .min_inputs = 8,
       .max_inputs = 9,
       .traits = {.elements = Elements::bytes,
                  .work = WorkKind::product,
                  .attributes = "auto_pad dilations group kernel_shape pads strides"},
       .infer = infer_qlinear_conv,
       .flops = flops_qlinear_conv,
       .evaluate = evaluate_qlinear_conv,
       .decompose = decompose_qlinear_conv},
  };
  return definitions;
}

}  // namespace superstep::op
