#include <cmath>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/window/pooling_loop.h"

namespace superstep::op {
namespace {

std::vector<ValueType> infer_pool(const InferContext& context) {
  require_floating(context, 0, "X");
  const ValueType& x = context.input(0);
  return {{x.element, pooled_shape(x.shape, windows_of(context.attributes, x.shape))}};
}

void evaluate_average(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const std::vector<Window> windows = windows_of(context.attributes, shape);
  const std::vector<double> counts = average_counts(context.attributes, windows);
  const std::vector<double> x = widen<double>(context.input(0));
  const std::int64_t planes = shape[0] * shape[1], x_plane = plane_size(shape);
  const auto y_plane = static_cast<std::int64_t>(counts.size());
  std::vector<double> y(static_cast<std::size_t>(planes * y_plane));
  for_each_window(windows, [&](std::int64_t output, std::span<const std::int64_t> taps) {
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      double total = 0;
      for (std::int64_t tap : taps) total += x[static_cast<std::size_t>(plane * x_plane + tap)];
      y[static_cast<std::size_t>(plane * y_plane + output)] =
          total / counts[static_cast<std::size_t>(output)];
    }
  });
  narrow(y, context.output(0));
}

std::vector<Var> vjp_average(const DerivativeContext& context, std::span<const Var> cotangents,
                             const std::vector<bool>&) {
  return {average_pool_gradient(cotangents[0], context.inputs[0].shape(), context.attributes)};
}

Attributes without_input_shape(Attributes attributes) {
  attributes.erase("input_shape");
  return attributes;
}

std::vector<Var> jvp_average(const DerivativeContext& context, std::span<const Var> tangents) {
  return {context.builder.node1("AveragePool", {tangents[0]}, context.attributes)};
}

std::vector<ValueType> infer_gradient(const InferContext& context) {
  require_floating(context, 0, "dY");
  const Shape x = checked_shape(context.attributes.integers("input_shape"));
  require_shape(context, 0, "dY", pooled_shape(x, windows_of(context.attributes, x)));
  return {{context.input(0).element, x}};
}

void evaluate_gradient(const EvaluateContext& context) {
  const Shape& shape = context.output(0).shape();
  const std::vector<Window> windows = windows_of(context.attributes, shape);
  const std::vector<double> counts = average_counts(context.attributes, windows);
  const std::vector<double> dy = widen<double>(context.input(0));
  const std::int64_t planes = shape[0] * shape[1], x_plane = plane_size(shape);
  const auto y_plane = static_cast<std::int64_t>(counts.size());
  std::vector<double> dx(static_cast<std::size_t>(planes * x_plane));
  for_each_window(windows, [&](std::int64_t output, std::span<const std::int64_t> taps) {
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      const double share =
          dy[static_cast<std::size_t>(plane * y_plane + output)] / counts[static_cast<std::size_t>(output)];
      for (std::int64_t tap : taps) dx[static_cast<std::size_t>(plane * x_plane + tap)] += share;
    }
  });
  narrow(dx, context.output(0));
}

std::vector<Var> vjp_gradient(const DerivativeContext& context, std::span<const Var> cotangents,
                              const std::vector<bool>&) {
  return {context.builder.node1("AveragePool", {cotangents[0]}, without_input_shape(context.attributes))};
}

std::vector<Var> jvp_gradient(const DerivativeContext& context, std::span<const Var> tangents) {
  return {average_pool_gradient(tangents[0], context.outputs[0].shape(), context.attributes)};
}

// Every plane as an image of one channel, convolved backwards with a kernel of ones.
std::vector<Var> decompose_gradient(const DerivativeContext& context) {
  Builder& builder = context.builder;
  const Var dy = context.inputs[0];
  const Shape& shape = context.outputs[0].shape();
  const std::vector<Window> windows = windows_of(context.attributes, shape);
  std::vector<std::int64_t> kernel = {1, 1}, strides, dilations, x_extents = {shape[0] * shape[1], 1};
  std::vector<std::int64_t> y_extents = x_extents, pads, ends, output_padding;
  for (const Window& w : windows) {
    kernel.push_back(w.kernel);
    strides.push_back(w.stride);
    dilations.push_back(w.dilation);
    x_extents.push_back(w.input);
    y_extents.push_back(w.output);
    pads.push_back(w.pad_begin);
    // What is cut at the end makes the result exactly the input's extent, however outputs were rounded.
    const std::int64_t surplus = (w.output - 1) * w.stride + w.reach() - w.pad_begin - w.input;
    ends.push_back(std::max<std::int64_t>(surplus, 0));
    output_padding.push_back(std::max<std::int64_t>(-surplus, 0));
  }
  pads.insert(pads.end(), ends.begin(), ends.end());
  const std::vector<double> counts = average_counts(context.attributes, windows);
  std::vector<std::int64_t> count_extents(y_extents.begin() + 1, y_extents.end());
  const Var divisor = builder.constant(Tensor::from(Shape(count_extents), counts).converted(dy.element()));
  const Var ones = builder.constant(Tensor::full(dy.element(), Shape(kernel), 1));
  const Var shares = reshape(dy, Shape(y_extents)) / divisor;
  const Var dx = builder.node1(
      "ConvTranspose", {shares, ones},
      {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"output_padding", output_padding}});
  return {reshape(dx, shape)};
}

// LpPool: (sum |x|^p)^(1/p).
void evaluate_lp(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const std::vector<Window> windows = windows_of(context.attributes, shape);
  const auto p = static_cast<double>(context.attributes.integer("p", 2));
  const std::vector<double> x = widen<double>(context.input(0));
  const std::int64_t planes = shape[0] * shape[1], x_plane = plane_size(shape);
  const std::int64_t y_plane = plane_size(context.output(0).shape());
  std::vector<double> y(static_cast<std::size_t>(planes * y_plane));
  for_each_window(windows, [&](std::int64_t output, std::span<const std::int64_t> taps) {
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      double total = 0;
      for (std::int64_t tap : taps)
        total += std::pow(std::abs(x[static_cast<std::size_t>(plane * x_plane + tap)]), p);
      y[static_cast<std::size_t>(plane * y_plane + output)] = std::pow(total, 1.0 / p);
    }
  });
  narrow(y, context.output(0));
}

// dy/dx = (|x| / y)^(p-1) sign(x), summed over the windows: a sum pooling and its transpose, both made of
// average pooling, whose divisor is the same for every window when padding counts.
Attributes lp_sum_attributes(const Attributes& attributes) {
  Attributes result = attributes;
  result.erase("p");
  result.set("count_include_pad", std::int64_t{1});
  return result;
}

Var lp_divisors(const DerivativeContext& context) {
  const Shape& x = context.inputs[0].shape();
  const auto windows = windows_of(context.attributes, x);
  const std::vector<double> counts = average_counts(lp_sum_attributes(context.attributes), windows);
  std::vector<std::int64_t> extents;
  for (const Window& window : windows) extents.push_back(window.output);
  return context.builder.constant(
      Tensor::from(Shape(extents), counts).converted(context.inputs[0].element()));
}

Var signed_power(Var x, double exponent) { return sign(x) * pow(abs(x), exponent); }

std::vector<Var> vjp_lp(const DerivativeContext& context, std::span<const Var> cotangents,
                        const std::vector<bool>&) {
  const Var x = context.inputs[0], y = context.outputs[0];
  const double p = static_cast<double>(context.attributes.integer("p", 2));
  const Var t = cotangents[0] * pow(y, 1.0 - p) * lp_divisors(context);
  return {average_pool_gradient(t, x.shape(), lp_sum_attributes(context.attributes)) *
          signed_power(x, p - 1.0)};
}

std::vector<Var> jvp_lp(const DerivativeContext& context, std::span<const Var> tangents) {
  const Var x = context.inputs[0], y = context.outputs[0];
  const double p = static_cast<double>(context.attributes.integer("p", 2));
  const Var pooled = context.builder.node1("AveragePool", {tangents[0] * signed_power(x, p - 1.0)},
                                           lp_sum_attributes(context.attributes));
  return {pooled * lp_divisors(context) * pow(y, 1.0 - p)};
}

}  // namespace

std::vector<double> average_counts(const Attributes& attributes, const std::vector<Window>& windows) {
  const bool include_pad = attributes.integer("count_include_pad", 0) != 0;
  std::vector<double> counts = {1.0};
  for (const Window& w : windows) {
    const std::int64_t low = include_pad ? -w.pad_begin : 0;
    const std::int64_t high = w.input + (include_pad ? w.pad_end : 0);
    std::vector<double> next;
    for (double outer : counts)
      for (std::int64_t o = 0; o < w.output; ++o) {
        int taps = 0;
        for (std::int64_t k = 0; k < w.kernel; ++k) {
          const std::int64_t i = o * w.stride - w.pad_begin + k * w.dilation;
          taps += i >= low && i < high;
        }
        next.push_back(outer * std::max(taps, 1));  // a window of padding alone: 0 / 1
      }
    counts = std::move(next);
  }
  return counts;
}

Var average_pool(Var x, const PoolAttributes& attributes) {
  Attributes all = to_attributes(attributes);
  all.set("count_include_pad", std::int64_t{attributes.count_include_pad});
  return x.builder().node1("AveragePool", {x}, std::move(all));
}

Var average_pool_gradient(Var dy, const Shape& x_shape, const Attributes& attributes) {
  Attributes all = attributes;
  all.set("input_shape", x_shape.extents());
  return dy.builder().node1("superstep.AveragePoolGradient", {dy}, std::move(all));
}

Var lp_pool(Var x, const PoolAttributes& attributes, std::int64_t p) {
  Attributes all = to_attributes(attributes);
  all.set("p", p);
  return x.builder().node1("LpPool", {x}, std::move(all));
}

std::span<const Definition> average_pooling_operators() {
  static const Definition definitions[] = {
      {.name = "AveragePool",
       .since_opset = 19,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::pooling,
                  .batch = batch::windowed,
                  .attributes = "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
                  .f32_since = 13},
       .infer = infer_pool,
       .flops = pooling_flops,
       .evaluate = evaluate_average,
       .vjp = vjp_average,
       .jvp = jvp_average},
      {.name = "superstep.AveragePoolGradient",
       .since_opset = 0,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::pooling,
                  .batch = batch::sample_by_sample},
       .infer = infer_gradient,
       .flops = [](const Attributes& attributes, std::span<const ValueType> inputs,
                   std::span<const ValueType>) { return pooling_flops(attributes, inputs, inputs); },
       .evaluate = evaluate_gradient,
       .vjp = vjp_gradient,
       .jvp = jvp_gradient,
       .decompose = decompose_gradient},
      {.name = "LpPool",
       .since_opset = 18,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::pooling,
                  .batch = batch::windowed,
                  .attributes = "auto_pad ceil_mode dilations kernel_shape p pads strides"},
       .infer = infer_pool,
       .flops = pooling_flops,
       .evaluate = evaluate_lp,
       .vjp = vjp_lp,
       .jvp = jvp_lp},
  };
  return definitions;
}

}  // namespace superstep::op
