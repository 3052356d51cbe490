#include "superstep/op/product/fourier.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "superstep/op/core/batch_axis.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/trigonometry.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/spectral.h"

namespace superstep::op {
namespace {

struct ComplexDoubles {
  std::vector<double> re, im;
};

std::vector<int> transformed_axes(const Attributes& attributes, const Shape& shape) {
  const std::vector<int> axes = checked_axes(attributes.integers("axes"), shape.rank(), "attribute 'axes'");
  require(!axes.empty(), "attribute 'axes' is empty: there is nothing to transform");
  return axes;
}

std::vector<ValueType> infer_fourier(const InferContext& context) {
  require_floating(context, 0, "re");
  if (context.has(1)) {
    require_same_element(context, 1, "im", 0, "re");
    require_shape(context, 1, "im", context.input(0).shape);
  }
  transformed_axes(context.attributes, context.input(0).shape);
  return {context.input(0), context.input(0)};
}

// Along one axis by the definition, term by term: a reference for fast transforms.
ComplexDoubles transformed_along(const ComplexDoubles& z, const Shape& shape, int axis, bool inverse) {
  const std::int64_t n = shape[axis];
  std::int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  std::vector<double> cosines, sines;
  for (std::int64_t j = 0; j < n; ++j) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
    cosines.push_back(std::cos(angle));
    sines.push_back(inverse ? std::sin(angle) : -std::sin(angle));
  }
  ComplexDoubles result{std::vector<double>(z.re.size()), std::vector<double>(z.re.size())};
  for (std::int64_t i = 0; i < shape.element_count(); ++i) {
    const std::int64_t k = i / inner % n, line = i - k * inner;
    double re = 0, im = 0;
    for (std::int64_t t = 0, j = 0; t < n; ++t, j = (j + k) % n) {
      const auto at = static_cast<std::size_t>(line + t * inner), turn = static_cast<std::size_t>(j);
      re += z.re[at] * cosines[turn] - z.im[at] * sines[turn];
      im += z.re[at] * sines[turn] + z.im[at] * cosines[turn];
    }
    result.re[static_cast<std::size_t>(i)] = re;
    result.im[static_cast<std::size_t>(i)] = im;
  }
  return result;
}

void evaluate_fourier(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  ComplexDoubles z{widen<double>(context.input(0)), {}};
  z.im = context.has(1) ? widen<double>(context.input(1)) : std::vector<double>(z.re.size());
  for (int axis : transformed_axes(context.attributes, shape))
    z = transformed_along(z, shape, axis, context.attributes.integer("inverse", 0) != 0);
  const double scale = context.attributes.number("scale", 1);
  for (std::vector<double>* part : {&z.re, &z.im})
    for (double& value : *part) value *= scale;
  narrow(z.re, context.output(0));
  if (context.wants(1)) narrow(z.im, context.output(1));
}

Complex transformed(Complex z, const Attributes& attributes) {
  const std::vector<Var> parts =
      z.re.builder().node("superstep.Fourier", std::vector{z.re, z.im}, attributes, 2);
  return {parts[0], parts[1]};
}

// Of a number that may have an imaginary part alone: F(i y) = i F(y).
Complex transformed_any(Complex z, const Attributes& attributes) {
  if (z.re.valid()) return transformed(z, attributes);
  const Complex turned = transformed({z.im, {}}, attributes);
  return {-turned.im, turned.re};
}

// As a map of real and imaginary parts the transform is a matrix whose transpose is that of the other
// direction.
std::vector<Var> vjp_fourier(const DerivativeContext& context, std::span<const Var> cotangents,
                             const std::vector<bool>& wanted) {
  Attributes attributes = context.attributes;
  attributes.set("inverse", std::int64_t{context.attributes.integer("inverse", 0) == 0});
  const Var im = cotangents.size() > 1 ? cotangents[1] : Var();
  const Complex back = transformed_any({cotangents[0], im}, attributes);
  std::vector<Var> result = no_cotangents(context);
  if (wanted[0]) result[0] = back.re;
  if (result.size() > 1 && wanted[1]) result[1] = back.im;
  return result;
}

std::vector<Var> jvp_fourier(const DerivativeContext& context, std::span<const Var> tangents) {
  const Var im = tangents.size() > 1 ? tangents[1] : Var();
  const Complex along = transformed_any({tangents[0], im}, context.attributes);
  return {along.re, along.im};
}

Var part_of(Var pairs, std::int64_t part, const Shape& shape) {
  return reshape(slice(pairs, {part}, {part + 1}, {shape.rank()}), shape);
}

// DFT along one axis after the other, of parts side by side; its inverse divides by n.
std::vector<Var> decompose_fourier(const DerivativeContext& context) {
  const Shape& shape = context.inputs[0].shape();
  const bool inverse = context.attributes.integer("inverse", 0) != 0;
  double scale = context.attributes.number("scale", 1);
  Var pairs = unsqueeze(context.inputs[0], {shape.rank()});
  if (context.has(1))
    pairs = concat(std::vector{pairs, unsqueeze(context.inputs[1], {shape.rank()})}, shape.rank());
  for (int axis : transformed_axes(context.attributes, shape)) {
    pairs = dft(pairs, axis, inverse);
    if (inverse) scale *= static_cast<double>(shape[axis]);
  }
  if (scale != 1) pairs = pairs * scale;
  return {part_of(pairs, 0, shape), part_of(pairs, 1, shape)};
}

// A fast transform's operations: 5 n log2 n of a line.
double flops_of_fourier(const Attributes& attributes, std::span<const ValueType> inputs,
                        std::span<const ValueType>) {
  const Shape& shape = inputs[0].shape;
  double flops = 0;
  for (int axis : transformed_axes(attributes, shape))
    flops += 5.0 * static_cast<double>(shape.element_count()) *
             std::log2(static_cast<double>(std::max<std::int64_t>(2, shape[axis])));
  return flops;
}

// Real and imaginary parts are transformed together: samples stay apart along every other axis.
BatchAxis samples_of_fourier(const BatchSite& site) {
  for (std::size_t part = 0; part < site.inputs.size(); ++part)
    if (site.has(part) && (!site.is(part, BatchKind::per_sample) || site.inputs[part] != site.inputs[0]))
      return mixes("transforms numbers whose parts do not both follow the samples");
  for (std::int64_t axis : site.node.attributes.integers("axes"))
    if (normalize_axis(axis, site.shape(0).rank()) == site.inputs[0].axis)
      return mixes("transforms along the batch");
  return site.inputs[0];
}

}  // namespace

Complex fourier(Complex z, const std::vector<std::int64_t>& axes, bool inverse, double scale) {
  return transformed(z, {{"axes", axes}, {"inverse", std::int64_t{inverse}}, {"scale", scale}});
}

Complex product(Complex a, Complex b) {
  if (!a.im.valid()) std::swap(a, b);
  if (!b.im.valid()) return {a.re * b.re, a.im.valid() ? a.im * b.re : Var()};
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

Complex conjugate(Complex z) { return {z.re, z.im.valid() ? -z.im : Var()}; }

Complex polar(Var amplitude, Var phase) { return {amplitude * cos(phase), amplitude * sin(phase)}; }

namespace {

Var squared_at_least(Complex z, double least) {
  Var square = z.re * z.re;
  if (z.im.valid()) square = square + z.im * z.im;
  return max(square, constant_like(square, least * least));
}

}  // namespace

Var magnitude(Complex z, double least) { return sqrt(squared_at_least(z, least)); }

// 2 atan(im / (|z| + |re|)) is the angle in the right half of the plane, where nothing cancels; the left half
// is its mirror image.
Var angle(Complex z, double least) {
  const Var none = constant_like(z.re, 0);
  const Var im = z.im.valid() ? z.im : z.re * 0.0;
  const Var length = magnitude({z.re, im}, least);
  const Var right = 2.0 * atan(im / (length + abs(z.re)));
  const Var half_turn =
      where(less(im, none), constant_like(im, -std::numbers::pi), constant_like(im, std::numbers::pi));
  const Var turn = where(less(z.re, none), half_turn - right, right);
  return where(greater(length, constant_like(length, least)), turn, none);
}

std::span<const Definition> fourier_operators() {
  static const Definition definitions[] = {
      {.name = "superstep.Fourier",
       .since_opset = 0,
       .max_inputs = 2,
       .min_outputs = 2,
       .max_outputs = 2,
       .traits = {.elements = Elements::floating, .work = WorkKind::spectral, .batch = samples_of_fourier},
       .infer = infer_fourier,
       .flops = flops_of_fourier,
       .evaluate = evaluate_fourier,
       .vjp = vjp_fourier,
       .jvp = jvp_fourier,
       .decompose = decompose_fourier},
  };
  return definitions;
}

}  // namespace superstep::op
