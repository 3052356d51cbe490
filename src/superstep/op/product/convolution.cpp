#include "superstep/op/product/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution_columns.h"
#include "superstep/op/product/convolution_loop.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

// Refuses what neither Conv nor its gradients can read: ranks, group, kernel_shape.
void check_operands(const Attributes& attributes, const Shape& x, const Shape& w) {
  require(x.rank() >= 3, fmt::format("input X is of rank {}, expected 3 to 5", x.rank()));
  require(w.rank() == x.rank(), fmt::format("input W is of rank {}, expected {} like X", w.rank(), x.rank()));
  require(attributes.integer("group", 1) >= 1, "attribute 'group' must be positive");
  const Extents kernel = spatial_extents(w);
  require(attributes.integers("kernel_shape", kernel) == kernel,
          fmt::format("attribute 'kernel_shape' does not agree with input W {}", to_string(w)));
}

Shape with_channels(std::int64_t batch, std::int64_t channels, const std::vector<Window>& windows,
                    std::int64_t Window::*extent) {
  Extents extents = {batch, channels};
  for (const Window& window : windows) extents.push_back(window.*extent);
  return checked_shape(extents);
}

void check_bias(const InferContext& context, std::int64_t maps) {
  if (!context.has(2)) return;
  require_same_element(context, 2, "B", 0, "X");
  require_shape(context, 2, "B", {maps});
}

std::vector<ValueType> infer_conv(const InferContext& context) {
  require_floating(context, 0, "X");
  require_same_element(context, 1, "W", 0, "X");
  const ConvGeometry g = conv_geometry(context.attributes, context.input(0).shape, context.input(1).shape);
  const std::int64_t maps = g.group * g.out_per_group;
  check_bias(context, maps);
  return {{context.input(0).element, with_channels(g.batch, maps, g.windows, &Window::output)}};
}

std::vector<ValueType> infer_conv_transpose(const InferContext& context) {
  require_floating(context, 0, "X");
  require_same_element(context, 1, "W", 0, "X");
  const ConvGeometry g =
      conv_transpose_geometry(context.attributes, context.input(0).shape, context.input(1).shape);
  const std::int64_t channels = g.group * g.in_per_group;
  check_bias(context, channels);
  return {{context.input(0).element, with_channels(g.batch, channels, g.windows, &Window::input)}};
}

Shape weight_shape(const Attributes& attributes, const Shape& x, const Shape& dy) {
  const std::int64_t group = attributes.integer("group", 1);
  require(group >= 1, "attribute 'group' must be positive");
  Extents extents = attributes.integers("kernel_shape");
  extents.insert(extents.begin(), {dy.rank() > 1 ? dy[1] : 0, x.rank() > 1 ? x[1] / group : 0});
  return checked_shape(extents);
}

std::vector<ValueType> infer_weight_gradient(const InferContext& context) {
  require_floating(context, 0, "X");
  require_same_element(context, 1, "dY", 0, "X");
  const Shape &x = context.input(0).shape, &dy = context.input(1).shape;
  const Shape w = weight_shape(context.attributes, x, dy);
  const ConvGeometry g = conv_geometry(context.attributes, x, w);
  require_shape(context, 1, "dY", with_channels(g.batch, w[0], g.windows, &Window::output));
  return {{context.input(0).element, w}};
}

std::vector<double> biased(const EvaluateContext& context, std::int64_t channels) {
  std::vector<double> values(static_cast<std::size_t>(context.output(0).element_count()));
  if (!context.has(2) || values.empty()) return values;
  const std::vector<double> bias = widen<double>(context.input(2));
  const std::size_t plane = values.size() / static_cast<std::size_t>(context.output(0).shape()[0] * channels);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = bias[i / plane % bias.size()];
  return values;
}

void evaluate_forward(const ConvGeometry& g, const EvaluateContext& context) {
  const std::vector<double> x = widen<double>(context.input(0)), w = widen<double>(context.input(1));
  std::vector<double> y = biased(context, context.output(0).shape()[1]);
  // What lies in the padding is left out, also where a weight is infinite.
  if (has_columns(g) && std::ranges::all_of(w, [](double weight) { return std::isfinite(weight); })) {
    add_by_columns(g, x, w, y);
    return narrow(y, context.output(0));
  }
  const std::int64_t stride = g.windows.back().stride;
  for_each_row(g, [&](std::int64_t xo, std::int64_t wo, std::int64_t yo, std::int64_t count) {
    const double factor = w[static_cast<std::size_t>(wo)];
    const double* from = x.data() + xo;
    double* to = y.data() + yo;
    for (std::int64_t j = 0; j < count; ++j) to[j] += factor * from[j * stride];
  });
  narrow(y, context.output(0));
}

void evaluate_transposed(const ConvGeometry& g, const EvaluateContext& context) {
  const std::vector<double> y = widen<double>(context.input(0)), w = widen<double>(context.input(1));
  std::vector<double> x = biased(context, context.output(0).shape()[1]);
  const std::int64_t stride = g.windows.back().stride;
  for_each_row(g, [&](std::int64_t xo, std::int64_t wo, std::int64_t yo, std::int64_t count) {
    const double factor = w[static_cast<std::size_t>(wo)];
    const double* from = y.data() + yo;
    double* to = x.data() + xo;
    for (std::int64_t j = 0; j < count; ++j) to[j * stride] += factor * from[j];
  });
  narrow(x, context.output(0));
}

void evaluate_by_weights(const ConvGeometry& g, const EvaluateContext& context) {
  const std::vector<double> x = widen<double>(context.input(0)), dy = widen<double>(context.input(1));
  std::vector<double> dw(static_cast<std::size_t>(context.output(0).element_count()));
  const std::int64_t stride = g.windows.back().stride;
  for_each_row(g, [&](std::int64_t xo, std::int64_t wo, std::int64_t yo, std::int64_t count) {
    const double *a = x.data() + xo, *b = dy.data() + yo;
    double total = 0;
    for (std::int64_t j = 0; j < count; ++j) total += a[j * stride] * b[j];
    dw[static_cast<std::size_t>(wo)] += total;
  });
  narrow(dw, context.output(0));
}

template <ProductKind kind>
void evaluate(const EvaluateContext& context) {
  evaluate_convolution(kind,
                       geometry_of(kind, context.attributes, context.input(0).shape(),
                                   context.input(1).shape(), context.output(0).shape()),
                       context);
}

// The sum over everything but channels: the cotangent of a bias.
Var bias_gradient(Var dy) {
  Axes axes = {0};
  for (int axis = 2; axis < dy.shape().rank(); ++axis) axes.push_back(axis);
  return reduce_sum(dy, axes);
}

std::vector<Var> vjp_conv(const DerivativeContext& context, std::span<const Var> cotangents,
                          const std::vector<bool>& wanted) {
  const Var x = context.inputs[0], w = context.inputs[1], dy = cotangents[0];
  std::vector<Var> result = no_cotangents(context);
  if (wanted[0]) result[0] = conv_input_gradient(dy, w, x.shape(), context.attributes);
  if (wanted[1]) result[1] = conv_weight_gradient(x, dy, spatial_extents(w.shape()), context.attributes);
  if (context.has(2) && wanted[2]) result[2] = bias_gradient(dy);
  return result;
}

Attributes without_kernel_shape(Attributes attributes) {
  attributes.erase("kernel_shape");
  return attributes;
}

// Conv and ConvTranspose are bilinear in input and weights, and linear in the bias.
std::vector<Var> jvp_bilinear(const DerivativeContext& context, std::span<const Var> tangents,
                              std::string_view op) {
  const auto term = [&](Var x, Var w) { return context.builder.node1(op, {x, w}, context.attributes); };
  Var total;
  if (tangents[0].valid()) total = term(tangents[0], context.inputs[1]);
  if (tangents[1].valid()) total = sum_valid(total, term(context.inputs[0], tangents[1]));
  if (tangents.size() < 3 || !tangents[2].valid()) return {total};
  Extents channels(static_cast<std::size_t>(context.outputs[0].shape().rank()), 1);
  channels[1] = tangents[2].shape()[0];
  return {expand_to(sum_valid(total, reshape(tangents[2], Shape(channels))), context.outputs[0].shape())};
}

std::vector<Var> jvp_conv(const DerivativeContext& context, std::span<const Var> tangents) {
  return jvp_bilinear(context, tangents, "Conv");
}
std::vector<Var> jvp_conv_transpose(const DerivativeContext& context, std::span<const Var> tangents) {
  return jvp_bilinear(context, tangents, "ConvTranspose");
}
std::vector<Var> jvp_weight_gradient(const DerivativeContext& context, std::span<const Var> tangents) {
  return jvp_bilinear(context, tangents, "superstep.ConvWeightGradient");
}

// The same convolution with everything explicit: no auto_pad, no output_shape.
Attributes explicit_attributes(const Attributes& attributes, const std::vector<Window>& windows) {
  Extents strides, dilations, pads, ends;
  for (const Window& window : windows) {
    strides.push_back(window.stride);
    dilations.push_back(window.dilation);
    pads.push_back(window.pad_begin);
    ends.push_back(window.pad_end);
  }
  pads.insert(pads.end(), ends.begin(), ends.end());
  return {{"strides", strides},
          {"dilations", dilations},
          {"pads", pads},
          {"group", attributes.integer("group", 1)}};
}

// An output padding of a stride or more leaves elements at the end that no window reaches; a convolution
// would take one window too many there.
Var without_unreached(Var x, const std::vector<Window>& windows) {
  Extents ends, axes;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    const std::int64_t reached = w.output * w.stride + w.reach() - 1 - w.pad_begin - w.pad_end;
    if (reached >= w.input) continue;
    ends.push_back(reached);
    axes.push_back(static_cast<std::int64_t>(i) + 2);
  }
  return axes.empty() ? x : slice(x, Extents(axes.size(), 0), ends, axes);
}

std::vector<Var> vjp_conv_transpose(const DerivativeContext& context, std::span<const Var> cotangents,
                                    const std::vector<bool>& wanted) {
  const Var y = context.inputs[0], w = context.inputs[1];
  const ConvGeometry g = conv_transpose_geometry(context.attributes, y.shape(), w.shape());
  const Attributes attributes = explicit_attributes(context.attributes, g.windows);
  const Var dx = without_unreached(cotangents[0], g.windows);
  std::vector<Var> result = no_cotangents(context);
  if (wanted[0]) result[0] = context.builder.node1("Conv", {dx, w}, attributes);
  if (wanted[1]) result[1] = conv_weight_gradient(dx, y, spatial_extents(w.shape()), attributes);
  if (context.has(2) && wanted[2]) result[2] = bias_gradient(cotangents[0]);
  return result;
}

std::vector<Var> vjp_weight_gradient(const DerivativeContext& context, std::span<const Var> cotangents,
                                     const std::vector<bool>& wanted) {
  const Var x = context.inputs[0], dy = context.inputs[1], dw = cotangents[0];
  std::vector<Var> result(2);
  if (wanted[0]) result[0] = conv_input_gradient(dy, dw, x.shape(), context.attributes);
  if (wanted[1]) result[1] = context.builder.node1("Conv", {x, dw}, context.attributes);
  return result;
}

// As ONNX: a weight gradient is a convolution of x and dy with the batch as the channel to sum over and
// stride and dilation exchanged; groups are cut apart and joined.
std::vector<Var> decompose_weight_gradient(const DerivativeContext& context) {
  const Var x = context.inputs[0], dy = context.inputs[1];
  const ConvGeometry g = conv_geometry(context.attributes, x.shape(), context.outputs[0].shape());
  const Attributes direct = explicit_attributes(context.attributes, g.windows);
  const Attributes attributes{{"strides", direct.integers("dilations")},
                              {"dilations", direct.integers("strides")},
                              {"pads", direct.integers("pads")}};
  Extents ends, axes;
  for (std::size_t i = 0; i < g.windows.size(); ++i) {
    ends.push_back(g.windows[i].kernel);
    axes.push_back(static_cast<std::int64_t>(i) + 2);
  }
  const Var images = swap_axes(x, 0, 1), maps = swap_axes(dy, 0, 1);
  std::vector<Var> parts;
  for (std::int64_t k = 0; k < g.group; ++k) {
    const Var image = slice(images, {k * g.in_per_group}, {(k + 1) * g.in_per_group}, {0});
    const Var map = slice(maps, {k * g.out_per_group}, {(k + 1) * g.out_per_group}, {0});
    const Var correlation = context.builder.node1("Conv", {image, map}, attributes);
    parts.push_back(swap_axes(slice(correlation, Extents(axes.size(), 0), ends, axes), 0, 1));
  }
  return {parts.size() == 1 ? parts[0] : concat(parts, 0)};
}

double flops_conv(const Attributes& attributes, std::span<const ValueType> inputs,
                  std::span<const ValueType> outputs) {
  const double bias = inputs.size() > 2 ? static_cast<double>(outputs[0].shape.element_count()) : 0.0;
  return conv_flops(conv_geometry(attributes, inputs[0].shape, inputs[1].shape)) + bias;
}

double flops_conv_transpose(const Attributes& attributes, std::span<const ValueType> inputs,
                            std::span<const ValueType> outputs) {
  const double bias = inputs.size() > 2 ? static_cast<double>(outputs[0].shape.element_count()) : 0.0;
  return conv_flops(conv_transpose_geometry(attributes, inputs[0].shape, inputs[1].shape)) + bias;
}

double flops_weight_gradient(const Attributes& attributes, std::span<const ValueType> inputs,
                             std::span<const ValueType> outputs) {
  return conv_flops(conv_geometry(attributes, inputs[0].shape, outputs[0].shape));
}

Attributes to_attributes(const ConvAttributes& a) {
  Attributes result{{"group", a.group}, {"auto_pad", a.auto_pad}};
  if (!a.strides.empty()) result.set("strides", a.strides);
  if (!a.dilations.empty()) result.set("dilations", a.dilations);
  if (!a.pads.empty()) result.set("pads", a.pads);
  return result;
}

}  // namespace

ConvGeometry conv_geometry(const Attributes& attributes, const Shape& x, const Shape& w) {
  check_operands(attributes, x, w);
  const std::int64_t group = attributes.integer("group", 1);
  require(x[1] == w[1] * group, fmt::format("input W {} with group {} takes {} channels, input X {} has {}",
                                            to_string(w), group, w[1] * group, to_string(x), x[1]));
  require(w[0] % group == 0,
          fmt::format("input W {} has {} maps, which group {} does not divide", to_string(w), w[0], group));
  return {x[0], group, w[1], w[0] / group,
          convolution_windows(attributes, spatial_extents(x), spatial_extents(w))};
}

ConvGeometry conv_transpose_geometry(const Attributes& attributes, const Shape& x, const Shape& w) {
  check_operands(attributes, x, w);
  const std::int64_t group = attributes.integer("group", 1);
  require(x[1] == w[0], fmt::format("input W {} takes {} channels, input X {} has {}", to_string(w), w[0],
                                    to_string(x), x[1]));
  require(w[0] % group == 0, fmt::format("input X {} has {} channels, which group {} does not divide",
                                         to_string(x), x[1], group));
  return {x[0], group, w[1], w[0] / group,
          transposed_windows(attributes, spatial_extents(x), spatial_extents(w))};
}

ConvGeometry geometry_of(ProductKind kind, const Attributes& attributes, const Shape& first,
                         const Shape& second, const Shape& result) {
  if (kind == ProductKind::transposed_convolution) return conv_transpose_geometry(attributes, first, second);
  return conv_geometry(attributes, first, kind == ProductKind::weight_gradient ? result : second);
}

void evaluate_convolution(ProductKind kind, const ConvGeometry& geometry, const EvaluateContext& context) {
  switch (kind) {
    case ProductKind::transposed_convolution: return evaluate_transposed(geometry, context);
    case ProductKind::weight_gradient: return evaluate_by_weights(geometry, context);
    default: return evaluate_forward(geometry, context);
  }
}

double conv_flops(const ConvGeometry& g) {
  double flops = 2.0 * static_cast<double>(g.batch * g.group) * static_cast<double>(g.in_per_group) *
                 static_cast<double>(g.out_per_group);
  for (const Window& window : g.windows)
    flops *= static_cast<double>(window.output) * static_cast<double>(window.kernel);
  return flops;
}

Var conv(Var x, Var w, Var bias, const ConvAttributes& attributes) {
  return x.builder().node1("Conv", {x, w, bias}, to_attributes(attributes));
}

Var conv_transpose(Var x, Var w, Var bias, const ConvTransposeAttributes& attributes) {
  Attributes all = to_attributes(attributes);
  if (!attributes.output_padding.empty()) all.set("output_padding", attributes.output_padding);
  if (!attributes.output_shape.empty()) all.set("output_shape", attributes.output_shape);
  return x.builder().node1("ConvTranspose", {x, w, bias}, std::move(all));
}

Var conv_weight_gradient(Var x, Var dy, const Extents& kernel_shape, const Attributes& conv_attributes) {
  Attributes attributes = conv_attributes;
  attributes.set("kernel_shape", kernel_shape);
  return x.builder().node1("superstep.ConvWeightGradient", {x, dy}, std::move(attributes));
}

Var conv_input_gradient(Var dy, Var w, const Shape& x_shape, const Attributes& conv_attributes) {
  const ConvGeometry g = conv_geometry(without_kernel_shape(conv_attributes), x_shape, w.shape());
  Attributes attributes = explicit_attributes(conv_attributes, g.windows);
  Extents output_padding;
  for (const Window& window : g.windows) {
    const std::int64_t covered =
        (window.output - 1) * window.stride + window.reach() - window.pad_begin - window.pad_end;
    output_padding.push_back(window.input - covered);
  }
  attributes.set("output_padding", output_padding);
  return dy.builder().node1("ConvTranspose", {dy, w}, std::move(attributes));
}

std::span<const Definition> convolution_operators() {
  static const Definition definitions[] = {
      {.name = "Conv",
       .since_opset = 11,
       .min_inputs = 2,
       .max_inputs = 3,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::product,
                  .batch = batch::windowed,
                  .attributes = "auto_pad dilations group kernel_shape pads strides",
                  .product = true,
                  .product_kind = ProductKind::convolution},
       .infer = infer_conv,
       .flops = flops_conv,
       .evaluate = evaluate<ProductKind::convolution>,
       .vjp = vjp_conv,
       .jvp = jvp_conv},
      {.name = "ConvTranspose",
       .since_opset = 11,
       .min_inputs = 2,
       .max_inputs = 3,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::product,
                  .batch = batch::windowed,
                  .attributes =
                      "auto_pad dilations group kernel_shape output_padding output_shape pads strides",
                  .product = true,
                  .product_kind = ProductKind::transposed_convolution},
       .infer = infer_conv_transpose,
       .flops = flops_conv_transpose,
       .evaluate = evaluate<ProductKind::transposed_convolution>,
       .vjp = vjp_conv_transpose,
       .jvp = jvp_conv_transpose},
      {.name = "superstep.ConvWeightGradient",
       .since_opset = 0,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::product,
                  .batch = batch::weight_gradient,
                  .product_kind = ProductKind::weight_gradient},
       .infer = infer_weight_gradient,
       .flops = flops_weight_gradient,
       .evaluate = evaluate<ProductKind::weight_gradient>,
       .vjp = vjp_weight_gradient,
       .jvp = jvp_weight_gradient,
       .decompose = decompose_weight_gradient},
  };
  return definitions;
}

}  // namespace superstep::op
