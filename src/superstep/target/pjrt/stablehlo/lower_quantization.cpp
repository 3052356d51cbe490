// Bytes and their scales, and products of bytes.
#include <fmt/format.h>

#include "superstep/op/product/convolution.h"
#include "superstep/op/product/quantization.h"
#include "superstep/target/pjrt/stablehlo/functions.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"
#include "superstep/target/pjrt/stablehlo/products.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

// A scale or zero point for every element: one for all, one a slice of an axis, or one a block of it.
Value everywhere(const Site& s, const Value& value, const Shape& x) {
  if (value.shape().element_count() == 1 && value.rank() <= 1)
    return s.emit.broadcast(s.emit.reshape(value, Shape{}), x, {});
  const int axis = s.axis(1, x.rank());
  const std::int64_t block = s.attributes().integer("block_size", 0);
  if (block == 0) return s.emit.broadcast(value, x, {axis});
  Extents repeated = value.shape().extents(), joined = repeated, axes;
  repeated.insert(repeated.begin() + axis + 1, block);
  joined[static_cast<std::size_t>(axis)] *= block;
  for (int i = 0; i < x.rank(); ++i) axes.push_back(i <= axis ? i : i + 1);
  const Value copies = s.emit.reshape(s.emit.broadcast(value, Shape(repeated), axes), Shape(joined));
  return s.emit.cut(copies, axis, 0, x[axis]);
}

// In f32, as ONNX divides, unless x is in f64 or of integers; limits of wide integers are beyond f32.
Values quantize(const Site& s) {
  const Value given = s.in(0);
  const bool in_f32 = is_floating(given.element()) && given.element() != ElementType::f64;
  const ElementType type = in_f32 ? ElementType::f32 : ElementType::f64;
  const Shape& shape = given.shape();
  const Value scale = everywhere(s, s.emit.convert(s.in(1), type), shape);
  Value y = s.emit.divide(s.emit.convert(given, type), scale);
  y = s.emit.convert(s.emit.unary("round_nearest_even", y), ElementType::f64);
  if (s.has(2)) y = s.emit.add(y, everywhere(s, s.emit.convert(s.in(2), ElementType::f64), shape));
  return {cast(s.emit, y, s.out().element)};
}

Values dequantize(const Site& s) {
  const Shape& shape = s.in(0).shape();
  const ElementType type = product_type(s.in(1).element());
  // Differences of wide integers are taken before they are rounded.
  Value x = s.emit.convert(s.in(0), ElementType::i64);
  if (s.has(2)) x = s.emit.subtract(x, everywhere(s, s.emit.convert(s.in(2), ElementType::i64), shape));
  return {s.emit.multiply(s.emit.convert(x, type), everywhere(s, s.emit.convert(s.in(1), type), shape))};
}

// --- products of bytes, less their zero points, in i32

// A zero point of matrix rows or columns: one for all, a vector along an axis, or full with that axis kept.
Value line(const Site& s, std::size_t input, const Shape& shape, int axis) {
  const Value zero = s.emit.convert(s.in(input), ElementType::i32);
  if (zero.shape().element_count() == 1) return s.emit.broadcast(s.emit.reshape(zero, Shape{}), shape, {});
  return zero.rank() > 1 ? s.emit.expand(zero, shape) : s.emit.broadcast(zero, shape, {axis});
}

Value centred(const Site& s, std::size_t input, std::size_t zero, int axis) {
  const Value x = s.emit.convert(s.in(input), ElementType::i32);
  return s.has(zero) ? s.emit.subtract(x, line(s, zero, x.shape(), axis)) : x;
}

Values matmul_integer(const Site& s) {
  const Value a = centred(s, 0, 2, std::max(s.in(0).rank() - 2, 0)), b = centred(s, 1, 3, s.in(1).rank() - 1);
  return {s.emit.reshape(matrix_product(s.emit, a, b, ElementType::i32), s.out_shape())};
}

Values convolution_integer(const Site& s) {
  const Value x = centred(s, 0, 2, 0), w = centred(s, 1, 3, 0);
  return {convolve(s.emit, x, w, op::conv_geometry(s.attributes(), x.shape(), w.shape()), s.out_shape(),
                   ElementType::i32)};
}

}  // namespace

std::span<const Lowering> quantization_lowerings() {
  static const Lowering table[] = {
      {"QuantizeLinear", quantize, Inputs::as_they_are},
      {"DequantizeLinear", dequantize, Inputs::as_they_are},
      {"MatMulInteger", matmul_integer, Inputs::as_they_are},
      {"ConvInteger", convolution_integer, Inputs::as_they_are},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
