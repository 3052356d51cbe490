// Convolution that reads x beside its regular places, by offsets of their own (Dai et al., arXiv 1703.06211),
// and weighs what it reads (Zhu et al., arXiv 1811.11168).
#include <fmt/format.h>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/window/sampling.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

enum Input : std::size_t { x_input, w_input, offset_input, bias_input, mask_input };

struct Deformed {
  std::vector<Window> windows;
  std::int64_t group, offset_group;
  std::int64_t taps, points;  // of a kernel, of the result
  Shape result;
};

Deformed deformed(const Attributes& attributes, const Shape& x, const Shape& w) {
  require(x.rank() == w.rank() && x.rank() >= 3,
          fmt::format("inputs X {} and W {} must be of one rank, 3 or more", to_string(x), to_string(w)));
  Deformed d{.windows = convolution_windows(attributes, spatial_extents(x), spatial_extents(w)),
             .group = attributes.integer("group", 1),
             .offset_group = attributes.integer("offset_group", 1),
             .taps = 1,
             .points = 1,
             .result = {}};
  require(d.group >= 1 && x[1] == w[1] * d.group && w[0] % d.group == 0,
          fmt::format("inputs X {} and W {} do not fit {} groups", to_string(x), to_string(w), d.group));
  require(
      d.offset_group >= 1 && x[1] % d.offset_group == 0,
      fmt::format("attribute 'offset_group' is {}, which does not divide {} channels", d.offset_group, x[1]));
  Extents extents{x[0], w[0]};
  for (const Window& window : d.windows) {
    d.taps *= window.kernel;
    d.points *= window.output;
    extents.push_back(window.output);
  }
  d.result = Shape(extents);
  return d;
}

std::vector<ValueType> infer_deformed(const InferContext& context) {
  require_floating(context, x_input, "X");
  require_same_element(context, w_input, "W", x_input, "X");
  require_same_element(context, offset_input, "offset", x_input, "X");
  const Shape &x = context.input(x_input).shape, &w = context.input(w_input).shape;
  const Deformed d = deformed(context.attributes, x, w);
  Extents extents = d.result.extents();
  extents[1] = d.offset_group * d.taps * static_cast<std::int64_t>(d.windows.size());
  require_shape(context, offset_input, "offset", Shape(extents));
  if (context.has(bias_input)) require_shape(context, bias_input, "B", {w[0]});
  if (context.has(bias_input)) require_same_element(context, bias_input, "B", x_input, "X");
  extents[1] = d.offset_group * d.taps;
  if (context.has(mask_input)) require_shape(context, mask_input, "mask", Shape(extents));
  if (context.has(mask_input)) require_same_element(context, mask_input, "mask", x_input, "X");
  return {{context.input(x_input).element, d.result}};
}

// Where each tap of each point reads along an axis without offsets: [1, taps * points].
Tensor regular_positions(const Deformed& d, std::size_t axis) {
  Extents kernel, output;
  for (const Window& window : d.windows) {
    kernel.push_back(window.kernel);
    output.push_back(window.output);
  }
  const std::int64_t tap_stride = Shape(kernel).row_major_strides()[axis];
  const std::int64_t point_stride = Shape(output).row_major_strides()[axis];
  const Window& window = d.windows[axis];
  Tensor positions(ElementType::f64, {1, d.taps * d.points});
  for (std::int64_t i = 0; i < positions.element_count(); ++i) {
    const std::int64_t tap = i / d.points / tap_stride % window.kernel;
    const std::int64_t point = i % d.points / point_stride % window.output;
    positions.set(i, static_cast<double>(point * window.stride - window.pad_begin + tap * window.dilation));
  }
  return positions;
}

// What every tap reads: [N, C, taps, points].
Var columns(const DerivativeContext& context, const Deformed& d) {
  const Var x = context.inputs[x_input];
  const std::int64_t samples = x.shape()[0], rows = samples * d.offset_group;
  const auto axes = static_cast<std::int64_t>(d.windows.size());
  const Var offsets = reshape(context.inputs[offset_input], {rows, d.taps, axes, d.points});
  std::vector<std::vector<SampleTap>> taps;
  for (std::int64_t axis = 0; axis < axes; ++axis) {
    const Var regular =
        context.builder.constant(regular_positions(d, static_cast<std::size_t>(axis)).converted(x.element()));
    const Var own = reshape(slice(offsets, {axis}, {axis + 1}, {2}), {rows, d.taps * d.points});
    taps.push_back(linear_taps(own + regular, x.shape()[static_cast<int>(axis) + 2]));
  }
  Extents grouped{rows, x.shape()[1] / d.offset_group};
  grouped.insert(grouped.end(), x.shape().begin() + 2, x.shape().end());
  Var read = sample(reshape(x, Shape(grouped)), taps);
  if (context.has(mask_input))
    read = read * reshape(context.inputs[mask_input], {rows, 1, d.taps * d.points});
  return reshape(read, {samples, x.shape()[1], d.taps, d.points});
}

std::vector<Var> decompose_deformed(const DerivativeContext& context) {
  const Var w = context.inputs[w_input];
  const Deformed d = deformed(context.attributes, context.inputs[x_input].shape(), w.shape());
  const std::int64_t samples = d.result[0], inner = w.shape()[1] * d.taps, maps = w.shape()[0];
  const Var read = reshape(columns(context, d), {samples, d.group, inner, d.points});
  const Var weights = reshape(w, {1, d.group, maps / d.group, inner});
  const Var y = reshape(matmul(weights, read), d.result);
  if (!context.has(bias_input)) return {y};
  Extents column(static_cast<std::size_t>(d.result.rank()), 1);
  column[1] = maps;
  return {y + reshape(context.inputs[bias_input], Shape(column))};
}

}  // namespace

Var deformable_conv(Var x, Var w, Var offset, Var bias, Var mask, std::int64_t offset_group,
                    const ConvAttributes& a) {
  Attributes attributes{{"group", a.group}, {"offset_group", offset_group}};
  if (!a.strides.empty()) attributes.set("strides", a.strides);
  if (!a.dilations.empty()) attributes.set("dilations", a.dilations);
  if (!a.pads.empty()) attributes.set("pads", a.pads);
  return x.builder().node1("DeformConv", {x, w, offset, bias, mask}, attributes);
}

std::span<const Definition> deformable_convolution_operators() {
  static const Definition definitions[] = {composite<decompose_deformed>(
      {"DeformConv", 19, 3, 5}, infer_deformed,
      {.elements = Elements::floating,
       .work = WorkKind::elementwise,
       .attributes = "dilations group kernel_shape offset_group pads strides"})};
  return definitions;
}

}  // namespace superstep::op
