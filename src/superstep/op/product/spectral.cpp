#include "superstep/op/product/spectral.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "superstep/op/core/batch_axis.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

DftGeometry transform_of(const InferContext& context) {
  std::int64_t length = 0, axis = 0;
  if (context.has(1)) length = context.known_integers(1, "input dft_length").at(0);
  if (context.has(2)) axis = context.known_integers(2, "input axis").at(0);
  return dft_geometry(context.attributes, context.input(0).shape, context.has(1) ? &length : nullptr,
                      context.has(2) ? &axis : nullptr);
}

DftGeometry transform_of(const EvaluateContext& context) {
  std::int64_t length = 0, axis = 0;
  if (context.has(1)) length = integer_of(context.input(1));
  if (context.has(2)) axis = integer_of(context.input(2));
  return dft_geometry(context.attributes, context.input(0).shape(), context.has(1) ? &length : nullptr,
                      context.has(2) ? &axis : nullptr);
}

DftGeometry transform_of(const DerivativeContext& context) {
  std::int64_t length = 0, axis = 0;
  if (context.has(1)) length = constant_integers(context.inputs[1]).at(0);
  if (context.has(2)) axis = constant_integers(context.inputs[2]).at(0);
  return dft_geometry(context.attributes, context.inputs[0].shape(), context.has(1) ? &length : nullptr,
                      context.has(2) ? &axis : nullptr);
}

std::vector<ValueType> infer_dft(const InferContext& context) {
  require_floating(context, 0, "input");
  const DftGeometry t = transform_of(context);
  Extents extents = context.input(0).shape.extents();
  extents[static_cast<std::size_t>(t.axis)] = t.bins;
  extents.back() = t.real ? 1 : 2;
  return {{context.input(0).element, Shape(extents)}};
}

// e^(-2 pi i j / n) for j in [0, n), conjugated for the inverse.
struct Roots {
  std::vector<double> re, im;
};
Roots roots_of(const DftGeometry& t) {
  Roots roots;
  for (std::int64_t j = 0; j < t.length; ++j) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(t.length);
    roots.re.push_back(std::cos(angle));
    roots.im.push_back(t.inverse ? std::sin(angle) : -std::sin(angle));
  }
  return roots;
}

// How often a bin of a onesided transform stands in the whole one: itself and its conjugate, but for 0 and
// n/2.
double multiplicity(const DftGeometry& t, std::int64_t bin) {
  return bin == 0 || 2 * bin == t.length ? 1 : 2;
}

// The definition, term by term: a reference for fast transforms.
void evaluate_dft(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const DftGeometry t = transform_of(context);
  const Roots roots = roots_of(t);
  const std::vector<double> x = widen<double>(context.input(0));
  std::vector<double> y(static_cast<std::size_t>(context.output(0).element_count()));
  const std::int64_t parts = shape[shape.rank() - 1];
  std::int64_t inner = 1, outer = 1;
  for (int axis = 0; axis < t.axis; ++axis) outer *= shape[axis];
  for (int axis = t.axis + 1; axis < shape.rank() - 1; ++axis) inner *= shape[axis];
  const double scale = t.inverse ? 1.0 / static_cast<double>(t.length) : 1.0;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i)
      for (std::int64_t k = 0; k < t.bins; ++k) {
        double re = 0, im = 0;
        for (std::int64_t s = 0, j = 0; s < t.given; ++s, j = (j + k) % t.length) {
          const double* value = x.data() + ((o * shape[t.axis] + s) * inner + i) * parts;
          const double times = t.real ? multiplicity(t, s) : 1.0;
          const double a = times * value[0], b = parts == 2 ? times * value[1] : 0.0;
          const double c = roots.re[static_cast<std::size_t>(j)], d = roots.im[static_cast<std::size_t>(j)];
          re += a * c - b * d;
          im += a * d + b * c;
        }
        double* result = y.data() + ((o * t.bins + k) * inner + i) * (t.real ? 1 : 2);
        result[0] = re * scale;
        if (!t.real) result[1] = im * scale;
      }
  narrow(y, context.output(0));
}

// Fills an axis with zeros, or cuts it, to `extent`.
Var fitted(Var x, int axis, std::int64_t extent) {
  const std::int64_t missing = extent - x.shape()[axis];
  if (missing == 0) return x;
  Extents pads(static_cast<std::size_t>(2 * x.shape().rank()), 0);
  pads[static_cast<std::size_t>(x.shape().rank() + axis)] = missing;
  return pad(x, pads);
}

// The transpose of the onesided inverse: the onesided transform, each bin times its multiplicity over n.
Var transpose_of_real(const DftGeometry& t, Var cotangent) {
  const Var bins = dft(cotangent, t.axis, false, true);
  Extents extents(static_cast<std::size_t>(bins.shape().rank()), 1);
  extents[static_cast<std::size_t>(t.axis)] = bins.shape()[t.axis];
  Tensor weights(ElementType::f64, Shape(extents));
  for (std::int64_t bin = 0; bin < weights.element_count(); ++bin)
    weights.set(bin, multiplicity(t, bin) / static_cast<double>(t.length));
  return bins * bins.builder().constant(weights.converted(bins.element()));
}

// As real numbers the transform is a matrix whose transpose is the transform of the other direction without
// (or with) the factor 1/n.
std::vector<Var> vjp_dft(const DerivativeContext& context, std::span<const Var> cotangents,
                         const std::vector<bool>&) {
  const Var x = context.inputs[0];
  const DftGeometry t = transform_of(context);
  const auto n = static_cast<double>(t.length);
  const Var full = fitted(cotangents[0], t.axis, t.length);
  Var result =
      t.real ? transpose_of_real(t, full) : dft(full, t.axis, !t.inverse) * (t.inverse ? 1.0 / n : n);
  result = fitted(result, t.axis, x.shape()[t.axis]);
  const int last = x.shape().rank() - 1;
  std::vector<Var> all = no_cotangents(context);
  all[0] = x.shape()[last] == 2 ? result : slice(result, {0}, {1}, {last});
  return all;
}

std::vector<Var> jvp_dft(const DerivativeContext& context, std::span<const Var> tangents) {
  std::vector<Var> inputs = context.inputs;
  inputs[0] = tangents[0];
  return context.builder.node("DFT", inputs, context.attributes);
}

// A fast transform's operations: 5 n log2 n of a complex line.
// One line at a time, along an axis that is an attribute (-2 by default) or an input; the last axis is that
// of real and imaginary part.
BatchAxis samples_of_dft(const BatchSite& site) {
  if (!site.is(0, BatchKind::per_sample) || !site.others_constant({0}))
    return mixes("uses a sum over the batch in a way that is not linear");
  std::int64_t axis = site.node.attributes.integer("axis", -2);
  if (site.has(2)) {
    const auto given = site.integers(2);
    if (!given || given->size() != 1) return mixes("transforms an axis that is not known");
    axis = given->front();
  }
  const int rank = site.shape(0).rank(), samples = site.inputs[0].axis;
  const bool touched = samples == normalize_axis(axis, rank) || samples == rank - 1;
  return touched ? mixes("transforms along the batch") : site.inputs[0];
}

double dft_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType> outputs) {
  const auto count = static_cast<double>(outputs[0].shape.element_count()) / 2;
  const auto length = static_cast<double>(std::max<std::int64_t>(2, inputs[0].shape.element_count()));
  return 5.0 * count * std::log2(length);
}

struct Frames {
  std::int64_t step, length, count;
};

Frames frames_of(const Shape& signal, std::int64_t step, std::int64_t length) {
  require(signal.rank() == 3 && (signal[2] == 1 || signal[2] == 2),
          fmt::format("input signal is {}, expected [batch, samples, 1 or 2]", to_string(signal)));
  require(step >= 1, fmt::format("input frame_step is {}, expected 1 or more", step));
  require(length >= 1 && length <= signal[1],
          fmt::format("a frame of {} samples does not fit a signal of {}", length, signal[1]));
  return {step, length, (signal[1] - length) / step + 1};
}

std::vector<ValueType> infer_stft(const InferContext& context) {
  require_floating(context, 0, "signal");
  const Shape& signal = context.input(0).shape;
  std::int64_t length = signal.rank() == 3 ? signal[1] : 0;
  if (context.has(2)) {
    require_rank(context, 2, "window", 1);
    require_same_element(context, 2, "window", 0, "signal");
    length = context.input(2).shape[0];
  }
  if (context.has(3)) {
    const std::int64_t given = context.known_integers(3, "input frame_length").at(0);
    require(!context.has(2) || given == length,
            fmt::format("inputs window and frame_length have lengths {} and {}", length, given));
    length = given;
  }
  const Frames f = frames_of(signal, context.known_integers(1, "input frame_step").at(0), length);
  const std::int64_t bins = context.attributes.integer("onesided", 1) ? length / 2 + 1 : length;
  return {{context.input(0).element, Shape{signal[0], f.count, bins, 2}}};
}

std::vector<Var> decompose_stft(const DerivativeContext& context) {
  const Var signal = context.inputs[0];
  const std::int64_t step = constant_integers(context.inputs[1]).at(0);
  std::int64_t length = signal.shape()[1];
  if (context.has(2))
    length = context.inputs[2].shape()[0];
  else if (context.has(3))
    length = constant_integers(context.inputs[3]).at(0);
  const Frames f = frames_of(signal.shape(), step, length);
  Extents positions;
  for (std::int64_t frame = 0; frame < f.count; ++frame)
    for (std::int64_t i = 0; i < length; ++i) positions.push_back(frame * step + i);
  Var frames = gather(signal, reshape(context.builder.integers(positions), {f.count, length}), 1);
  if (context.has(2)) frames = frames * reshape(context.inputs[2], {length, 1});
  return {dft(frames, 2, false, context.attributes.integer("onesided", 1) != 0)};
}

}  // namespace

// The axis is an input since operator set 20, an attribute (1 by default) in 17.
DftGeometry dft_geometry(const Attributes& attributes, const Shape& x, const std::int64_t* length_input,
                         const std::int64_t* axis_input) {
  require(x.rank() >= 2 && (x[x.rank() - 1] == 1 || x[x.rank() - 1] == 2),
          fmt::format("input is {}, expected a last axis of 1 (real) or 2 (complex)", to_string(x)));
  const std::int64_t axis = axis_input ? *axis_input : attributes.integer("axis", -2);
  DftGeometry t;
  t.axis = checked_axis(axis, x.rank(), "axis");
  require(t.axis < x.rank() - 1, "the last axis holds real and imaginary parts and cannot be transformed");
  t.inverse = attributes.integer("inverse", 0) != 0;
  const bool onesided = attributes.integer("onesided", 0) != 0;
  t.real = onesided && t.inverse;
  t.length = length_input ? *length_input : t.real ? 2 * (x[t.axis] - 1) : x[t.axis];
  require(t.length >= 1 && t.length < std::int64_t{1} << 32, fmt::format("the length is {}", t.length));
  t.given = std::min(t.real ? t.length / 2 + 1 : t.length, x[t.axis]);
  t.bins = onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  return t;
}

Var dft(Var x, std::int64_t axis, bool inverse, bool onesided, std::int64_t length) {
  Builder& builder = x.builder();
  const auto scalar = [&](std::int64_t value) { return builder.constant(Tensor::scalar(value)); };
  const int from_front = checked_axis(axis, x.shape().rank());
  return builder.node1("DFT", {x, length ? scalar(length) : Var(), scalar(from_front)},
                       {{"inverse", std::int64_t{inverse}}, {"onesided", std::int64_t{onesided}}});
}

Var stft(Var signal, std::int64_t step, Var window, bool onesided) {
  const Var step_input = signal.builder().constant(Tensor::scalar(step));
  return signal.builder().node1("STFT", {signal, step_input, window}, {{"onesided", std::int64_t{onesided}}});
}

std::span<const Definition> spectral_operators() {
  static const Definition definitions[] = {
      {.name = "DFT",
       .since_opset = 20,
       .max_inputs = 3,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::spectral,
                  .batch = samples_of_dft,
                  .attributes = "axis inverse onesided"},
       .infer = infer_dft,
       .flops = dft_flops,
       .evaluate = evaluate_dft,
       .vjp = vjp_dft,
       .jvp = jvp_dft,
       .shape_inputs = 0b110u},
      composite<decompose_stft>(
          {"STFT", 17, 2, 4, 1, 0b1010u}, infer_stft,
          {.elements = Elements::floating, .work = WorkKind::spectral, .attributes = "onesided"}),
  };
  return definitions;
}

}  // namespace superstep::op
