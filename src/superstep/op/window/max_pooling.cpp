#include <algorithm>
#include <limits>

#include "superstep/op/batch/rules.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/view.h"
#include "superstep/op/window/pooling_loop.h"

namespace superstep::op {
namespace {

std::vector<ValueType> infer_max_pool(const InferContext& context) {
  require_numeric(context, 0, "X");
  const ValueType& x = context.input(0);
  const Shape y = pooled_shape(x.shape, windows_of(context.attributes, x.shape));
  return {{x.element, y}, {ElementType::i64, y}};
}

// With storage_order 1 a position within a plane counts columns first.
std::int64_t stored_position(std::int64_t position, const std::vector<Window>& windows, bool columns_first) {
  if (!columns_first) return position;
  std::int64_t result = 0, size = 1;
  for (const Window& window : windows) size *= window.input;
  for (std::size_t i = windows.size(); i-- > 0;) {
    size /= windows[i].input;
    result += position % windows[i].input * size;
    position /= windows[i].input;
  }
  return result;
}

void evaluate_max_pool(const EvaluateContext& context) {
  const Shape& shape = context.input(0).shape();
  const std::vector<Window> windows = windows_of(context.attributes, shape);
  const std::int64_t x_plane = plane_size(shape), y_plane = plane_size(context.output(0).shape());
  const bool columns_first = context.attributes.integer("storage_order", 0) != 0;
  const std::int64_t planes = shape[0] * shape[1];
  dispatch_wide(context.input(0).type(), [&]<class W>() {
    const std::vector<W> x = widen<W>(context.input(0));
    std::vector<W> y(static_cast<std::size_t>(planes * y_plane));
    std::vector<std::int64_t> indices(y.size());
    for_each_window(windows, [&](std::int64_t output, std::span<const std::int64_t> taps) {
      for (std::int64_t plane = 0; plane < planes; ++plane) {
        const W* from = x.data() + plane * x_plane;
        std::int64_t best = taps.empty() ? 0 : taps[0];
        for (std::int64_t tap : taps)
          if (from[tap] > from[best] || (from[tap] != from[tap] && from[best] == from[best])) best = tap;
        const auto i = static_cast<std::size_t>(plane * y_plane + output);
        y[i] = taps.empty() ? std::numeric_limits<W>::lowest() : from[best];
        indices[i] = plane * x_plane + stored_position(best, windows, columns_first);
      }
    });
    if (context.wants(0)) narrow(y, context.output(0));
    if (context.wants(1)) narrow(indices, context.output(1));
  });
}

// Row-major positions of the largest elements: the node's own second output where it has one.
Var indices_of(const DerivativeContext& context) {
  const bool columns_first = context.attributes.integer("storage_order", 0) != 0;
  if (context.outputs.size() > 1 && context.outputs[1].valid() && !columns_first) return context.outputs[1];
  Attributes attributes = context.attributes;
  attributes.set("storage_order", std::int64_t{0});
  return context.builder.node("MaxPool", std::span(context.inputs), attributes, 2).at(1);
}

std::vector<Var> vjp_max_pool(const DerivativeContext& context, std::span<const Var> cotangents,
                              const std::vector<bool>&) {
  if (!cotangents[0].valid()) return {Var()};
  return {max_pool_gradient(cotangents[0], indices_of(context), context.inputs[0].shape())};
}

// Do no two windows share an element, and are all of one size, padding included?
bool tiles_plane(const Attributes& attributes, const std::vector<Window>& windows) {
  return attributes.integer("ceil_mode", 0) == 0 && std::ranges::all_of(windows, [](const Window& window) {
           return window.stride >= window.kernel && window.dilation == 1;
         });
}

// The tangents of the largest elements. Where windows do not overlap those are all that is left of their
// windows when the others are multiplied by zero: averages and products over planes, which keep samples
// apart. Else they are gathered from the whole of x.
std::vector<Var> jvp_max_pool(const DerivativeContext& context, std::span<const Var> tangents) {
  const Shape& shape = context.inputs[0].shape();
  if (const std::vector<Window> windows = windows_of(context.attributes, shape);
      tiles_plane(context.attributes, windows)) {
    double taps = 1;
    for (const Window& window : windows) taps *= static_cast<double>(window.kernel);
    const Var indices = indices_of(context);
    const Var chosen = max_pool_gradient(
        constant_of_shape(context.builder, tangents[0].element(), indices.shape(), 1), indices, shape);
    Attributes averaging = context.attributes;
    averaging.erase("storage_order");
    averaging.set("count_include_pad", std::int64_t{1});
    const Var mean = context.builder.node1("AveragePool", {tangents[0] * chosen}, averaging);
    std::vector<Var> found(context.outputs.size());
    found[0] = mean * taps;
    return found;
  }
  const std::int64_t count = tangents[0].shape().element_count();
  std::vector<Var> result(context.outputs.size());
  result[0] = gather(reshape(tangents[0], {count}), indices_of(context));
  return result;
}

Shape input_shape(const Attributes& attributes) { return checked_shape(attributes.integers("input_shape")); }

std::vector<ValueType> infer_gradient(const InferContext& context) {
  require_numeric(context, 0, "dY");
  require_integer(context, 1, "Indices");
  require_shape(context, 1, "Indices", context.input(0).shape);
  return {{context.input(0).element, input_shape(context.attributes)}};
}

void evaluate_gradient(const EvaluateContext& context) {
  const std::vector<double> dy = widen<double>(context.input(0));
  const auto indices = widen<std::int64_t>(context.input(1));
  std::vector<double> dx(static_cast<std::size_t>(context.output(0).element_count()));
  for (std::size_t i = 0; i < dy.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= context.output(0).element_count())
      throw Error(ErrorCode::invalid_argument,
                  "input Indices holds " + std::to_string(indices[i]) + ", which lies outside the result");
    dx[static_cast<std::size_t>(indices[i])] += dy[i];
  }
  narrow(dx, context.output(0));
}

std::vector<Var> vjp_gradient(const DerivativeContext& context, std::span<const Var> cotangents,
                              const std::vector<bool>&) {
  const std::int64_t count = cotangents[0].shape().element_count();
  return {gather(reshape(cotangents[0], {count}), context.inputs[1]), Var()};
}

std::vector<Var> jvp_gradient(const DerivativeContext& context, std::span<const Var> tangents) {
  if (!tangents[0].valid()) return {Var()};
  return {max_pool_gradient(tangents[0], context.inputs[1], context.outputs[0].shape())};
}

std::vector<Var> decompose_gradient(const DerivativeContext& context) {
  const Var dy = context.inputs[0];
  const Shape& shape = context.outputs[0].shape();
  const std::int64_t count = dy.shape().element_count();
  const Var zeros = constant_of_shape(context.builder, dy.element(), {shape.element_count()});
  const Var indices = reshape(context.inputs[1], {count, 1});
  return {reshape(scatter_nd(zeros, indices, reshape(dy, {count}), "add"), shape)};
}

}  // namespace

Attributes to_attributes(const PoolAttributes& a) {
  Attributes result{
      {"kernel_shape", a.kernel_shape}, {"auto_pad", a.auto_pad}, {"ceil_mode", std::int64_t{a.ceil_mode}}};
  if (!a.strides.empty()) result.set("strides", a.strides);
  if (!a.dilations.empty()) result.set("dilations", a.dilations);
  if (!a.pads.empty()) result.set("pads", a.pads);
  return result;
}

MaxPooled max_pool(Var x, const PoolAttributes& attributes) {
  const std::vector<Var> outputs =
      x.builder().node("MaxPool", std::span(&x, 1), to_attributes(attributes), 2);
  return {outputs[0], outputs[1]};
}

Var max_pool_gradient(Var dy, Var indices, const Shape& x_shape) {
  return dy.builder().node1("superstep.MaxPoolGradient", {dy, indices}, {{"input_shape", x_shape.extents()}});
}

std::span<const Definition> max_pooling_operators() {
  static const Definition definitions[] = {
      {.name = "MaxPool",
       .since_opset = 12,
       .max_outputs = 2,
       .traits = {.elements = Elements::numeric,
                  .work = WorkKind::pooling,
                  .batch = batch::windowed,
                  .attributes = "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
                  .precision = Precision::follows,
                  .moves_bytes = true},
       .infer = infer_max_pool,
       .flops = pooling_flops,
       .evaluate = evaluate_max_pool,
       .vjp = vjp_max_pool,
       .jvp = jvp_max_pool},
      {.name = "superstep.MaxPoolGradient",
       .since_opset = 0,
       .min_inputs = 2,
       .max_inputs = 2,
       .traits = {.elements = Elements::numeric, .work = WorkKind::pooling, .batch = batch::sample_by_sample},
       .infer = infer_gradient,
       .evaluate = evaluate_gradient,
       .vjp = vjp_gradient,
       .jvp = jvp_gradient,
       .decompose = decompose_gradient},
  };
  return definitions;
}

}  // namespace superstep::op
