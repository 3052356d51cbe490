#include "superstep/op/window/resize.h"

#include <fmt/format.h>

#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/window/resize_axis.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

// Upsample is the Resize of operator set 9: its inputs are X and scales.
Attributes as_resize(const Attributes& attributes) {
  Attributes result = attributes;
  result.set("coordinate_transformation_mode", std::string("asymmetric"));
  result.set("nearest_mode", std::string("floor"));
  return result;
}

const Tensor* known(const InferContext& context, std::size_t input, const char* name) {
  if (!context.has(input)) return nullptr;
  if (context.constants[input]) return context.constants[input];
  throw Error(ErrorCode::unsupported, fmt::format("input {} must be known when the graph is compiled", name));
}

ValueType resized(const InferContext& context, const std::vector<ResizeAxis>& axes) {
  Extents extents;
  for (const ResizeAxis& axis : axes) extents.push_back(axis.output);
  return {context.input(0).element, Shape(extents)};
}

std::vector<ValueType> infer_resize(const InferContext& context) {
  require_numeric(context, 0, "X");
  const auto axes = resize_axes(context.attributes, context.input(0).shape, known(context, 1, "roi"),
                                known(context, 2, "scales"), known(context, 3, "sizes"));
  for (const ResizeAxis& axis : axes)
    resize_rows(context.attributes, {.input = 1, .output = axis.output ? 1 : 0});
  return {resized(context, axes)};
}

std::vector<ValueType> infer_upsample(const InferContext& context) {
  require_numeric(context, 0, "X");
  return {resized(context, resize_axes(as_resize(context.attributes), context.input(0).shape, nullptr,
                                       known(context, 1, "scales"), nullptr))};
}

// x with one axis resampled.
std::vector<double> resampled(const std::vector<double>& x, Shape& shape, int axis,
                              const std::vector<ResizeRow>& rows, double extrapolation) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  const auto count = static_cast<std::int64_t>(rows.size());
  std::vector<double> y(static_cast<std::size_t>(outer * count * inner));
  for (std::int64_t block = 0; block < outer; ++block)
    for (std::int64_t o = 0; o < count; ++o) {
      double* target = y.data() + (block * count + o) * inner;
      const ResizeRow& row = rows[static_cast<std::size_t>(o)];
      if (row.outside) std::fill(target, target + inner, extrapolation);
      for (const ResizeTap& tap : row.taps) {
        if (tap.weight == 0) continue;  // infinite or not
        const double* source = x.data() + (block * shape[axis] + tap.position) * inner;
        for (std::int64_t i = 0; i < inner; ++i) target[i] += tap.weight * source[i];
      }
    }
  Extents extents = shape.extents();
  extents[static_cast<std::size_t>(axis)] = count;
  shape = Shape(extents);
  return y;
}

// The rows of every axis, none where they would copy it as it is.
std::vector<ResizeRows> rows_of(const Attributes& attributes, const std::vector<ResizeAxis>& axes) {
  std::vector<ResizeRows> all;
  for (const ResizeAxis& axis : axes) {
    all.push_back(resize_rows(attributes, axis));
    if (is_identity(axis, all.back())) all.back().clear();
  }
  return all;
}

void evaluate_axes(const EvaluateContext& context, const Attributes& attributes,
                   const std::vector<ResizeAxis>& axes) {
  resample(context.input(0), rows_of(attributes, axes), attributes.number("extrapolation_value", 0),
           context.output(0));
}

const Tensor* optional_input(const EvaluateContext& context, std::size_t input) {
  return context.has(input) ? &context.input(input) : nullptr;
}

void evaluate_resize(const EvaluateContext& context) {
  evaluate_axes(context, context.attributes,
                resize_axes(context.attributes, context.input(0).shape(), optional_input(context, 1),
                            optional_input(context, 2), optional_input(context, 3)));
}

void evaluate_upsample(const EvaluateContext& context) {
  const Attributes attributes = as_resize(context.attributes);
  evaluate_axes(context, attributes,
                resize_axes(attributes, context.input(0).shape(), nullptr, &context.input(1), nullptr));
}

// k copies of every element, one after the other; 0 when the rows do something else.
std::int64_t whole_factor(const ResizeAxis& axis, const std::vector<ResizeRow>& rows) {
  if (axis.input == 0 || axis.output % axis.input) return 0;
  const std::int64_t factor = axis.output / axis.input;
  for (std::int64_t o = 0; o < axis.output; ++o) {
    const ResizeRow& row = rows[static_cast<std::size_t>(o)];
    if (row.taps.size() != 1 || row.taps[0].position != o / factor) return 0;
  }
  return factor;
}

Var sum_of_copies(Var t, int axis, std::int64_t factor) {
  Extents extents = t.shape().extents();
  extents[static_cast<std::size_t>(axis)] /= factor;
  extents.insert(extents.begin() + axis + 1, factor);
  return reduce_sum(reshape(t, Shape(extents)), {axis + 1});
}

// The rows as a matrix [output, input], times the axis: the transpose of resampling.
Var times_matrix(Var t, int axis, const ResizeAxis& plan, const std::vector<ResizeRow>& rows) {
  Tensor matrix(ElementType::f64, {plan.output, plan.input});
  auto elements = matrix.as<double>();
  for (std::int64_t o = 0; o < plan.output; ++o)
    for (const ResizeTap& tap : rows[static_cast<std::size_t>(o)].taps)
      elements[static_cast<std::size_t>(o * plan.input + tap.position)] += tap.weight;
  const int last = t.shape().rank() - 1;
  const Var weights = t.builder().constant(matrix.converted(t.element()));
  if (axis == last) return matmul(t, weights);
  return swap_axes(matmul(swap_axes(t, axis, last), weights), axis, last);
}

Var transposed(Var t, const Attributes& attributes, const std::vector<ResizeAxis>& axes) {
  for (int axis = 0; axis < static_cast<int>(axes.size()); ++axis) {
    const ResizeAxis& plan = axes[static_cast<std::size_t>(axis)];
    const std::vector<ResizeRow> rows = resize_rows(attributes, plan);
    if (is_identity(plan, rows)) continue;
    const std::int64_t factor = whole_factor(plan, rows);
    t = factor ? sum_of_copies(t, axis, factor) : times_matrix(t, axis, plan, rows);
  }
  return t;
}

const Tensor* optional_constant(const DerivativeContext& context, std::size_t input) {
  return context.has(input) ? constant_data(context.inputs[input]) : nullptr;
}

// superstep.ResizeGradient: dY, then roi, scales and sizes of the Resize whose input had `input_shape`.
std::vector<ResizeAxis> gradient_axes(const Attributes& attributes, const Tensor* roi, const Tensor* scales,
                                      const Tensor* sizes) {
  return resize_axes(attributes, Shape(attributes.integers("input_shape")), roi, scales, sizes);
}

std::vector<ValueType> infer_resize_gradient(const InferContext& context) {
  require_floating(context, 0, "dY");
  const auto axes = gradient_axes(context.attributes, known(context, 1, "roi"), known(context, 2, "scales"),
                                  known(context, 3, "sizes"));
  require_shape(context, 0, "dY", resized(context, axes).shape);
  return {{context.input(0).element, Shape(context.attributes.integers("input_shape"))}};
}

std::vector<Var> decompose_resize_gradient(const DerivativeContext& context) {
  return {transposed(context.inputs[0], context.attributes,
                     gradient_axes(context.attributes, optional_constant(context, 1),
                                   optional_constant(context, 2), optional_constant(context, 3)))};
}

std::vector<Var> vjp_resize(const DerivativeContext& context, std::span<const Var> cotangents,
                            const std::vector<bool>&) {
  std::vector<Var> result = no_cotangents(context), inputs = context.inputs;
  Attributes attributes = context.attributes;
  attributes.set("input_shape", context.inputs[0].shape().extents());
  inputs[0] = cotangents[0];
  result[0] = context.builder.node("superstep.ResizeGradient", inputs, attributes)[0];
  return result;
}

std::vector<Var> vjp_upsample(const DerivativeContext& context, std::span<const Var> cotangents,
                              const std::vector<bool>&) {
  const Attributes attributes = as_resize(context.attributes);
  const auto axes =
      resize_axes(attributes, context.inputs[0].shape(), nullptr, constant_data(context.inputs[1]), nullptr);
  return {transposed(cotangents[0], attributes, axes), Var()};
}

std::vector<Var> of_tangent(const DerivativeContext& context, Var tangent, std::string_view op) {
  std::vector<Var> inputs = context.inputs;
  inputs[0] = tangent;
  Attributes attributes = context.attributes;
  attributes.erase("extrapolation_value");  // a constant: its tangent is 0
  return context.builder.node(op, inputs, attributes);
}
std::vector<Var> jvp_resize(const DerivativeContext& context, std::span<const Var> tangents) {
  return of_tangent(context, tangents[0], "Resize");
}
std::vector<Var> jvp_upsample(const DerivativeContext& context, std::span<const Var> tangents) {
  return of_tangent(context, tangents[0], "Upsample");
}

// Two taps an axis for linear, four for cubic.
double resize_flops(const Attributes& attributes, std::span<const ValueType>,
                    std::span<const ValueType> outputs) {
  const std::string mode = attributes.text("mode", "nearest");
  const double taps = mode == "cubic" ? 4 : mode == "linear" ? 2 : 0;
  return 2.0 * taps * static_cast<double>(outputs[0].shape.element_count());
}

// Input elements instead of output ones: who reads each.
ResizeRows transposed_rows(const ResizeRows& rows, std::int64_t inputs) {
  ResizeRows result(static_cast<std::size_t>(inputs));
  for (std::size_t o = 0; o < rows.size(); ++o)
    for (const ResizeTap& tap : rows[o].taps)
      result[static_cast<std::size_t>(tap.position)].taps.push_back(
          {static_cast<std::int64_t>(o), tap.weight});
  return result;
}

}  // namespace

void resample(const Tensor& x, std::span<const ResizeRows> axes, double extrapolation, Tensor& y) {
  if (y.element_count() == 0) return;
  Shape shape = x.shape();
  std::vector<double> values = widen<double>(x);
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    if (!axes[axis].empty())
      values = resampled(values, shape, static_cast<int>(axis), axes[axis], extrapolation);
  narrow(values, y);
}

std::vector<ResizeRows> resize_rows_of(std::string_view op, const Attributes& attributes, const Shape& x,
                                       std::span<const Tensor* const> inputs) {
  const auto input = [&](std::size_t i) { return i < inputs.size() ? inputs[i] : nullptr; };
  if (op == "Upsample")
    return rows_of(as_resize(attributes), resize_axes(as_resize(attributes), x, nullptr, input(1), nullptr));
  const bool gradient = op == "superstep.ResizeGradient";
  const auto axes = gradient ? gradient_axes(attributes, input(1), input(2), input(3))
                             : resize_axes(attributes, x, input(1), input(2), input(3));
  std::vector<ResizeRows> rows = rows_of(attributes, axes);
  for (std::size_t axis = 0; gradient && axis < rows.size(); ++axis)
    if (!rows[axis].empty()) rows[axis] = transposed_rows(rows[axis], axes[axis].input);
  return rows;
}

namespace {

std::vector<Var> decompose_upsample(const DerivativeContext& context) {
  return {context.builder.node1("Resize", {context.inputs[0], Var(), context.inputs[1]},
                                as_resize(context.attributes))};
}

}  // namespace

Var resize(Var x, const Shape& shape, const ResizeAttributes& a) {
  return x.builder().node1("Resize", {x, Var(), Var(), x.builder().integers(shape.extents())},
                           {{"mode", a.mode},
                            {"coordinate_transformation_mode", a.coordinates},
                            {"nearest_mode", a.nearest},
                            {"cubic_coeff_a", a.cubic_coefficient},
                            {"exclude_outside", std::int64_t{a.exclude_outside}},
                            {"antialias", std::int64_t{a.antialias}}});
}

std::span<const Definition> resize_operators() {
  static const Definition definitions[] = {
      {.name = "Resize",
       .since_opset = 19,
       .max_inputs = 4,
       .traits = {.elements = Elements::numeric,
                  .work = WorkKind::movement,
                  .batch = batch::resized,
                  .attributes = "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
                                "extrapolation_value keep_aspect_ratio_policy mode nearest_mode"},
       .infer = infer_resize,
       .flops = resize_flops,
       .evaluate = evaluate_resize,
       .vjp = vjp_resize,
       .jvp = jvp_resize,
       .shape_inputs = 0b1110u},
      {.name = "Upsample",
       .since_opset = 9,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::numeric,
                  .work = WorkKind::movement,
                  .batch = batch::resized,
                  .attributes = "height_scale mode scales width_scale"},
       .infer = infer_upsample,
       .flops = resize_flops,
       .evaluate = evaluate_upsample,
       .vjp = vjp_upsample,
       .jvp = jvp_upsample,
       .decompose = decompose_upsample,
       .shape_inputs = 0b10u},
      composite<decompose_resize_gradient>(
          {"superstep.ResizeGradient", 0, 1, 4, 1, 0b1110u}, infer_resize_gradient,
          {.elements = Elements::floating, .work = WorkKind::movement, .batch = batch::resized}),
  };
  return definitions;
}

}  // namespace superstep::op
