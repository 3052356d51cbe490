// Convolutions and their gradients. Gradients are convolutions with exchanged axes and dilated operands,
// which compilers of every plug-in know from the programs that JAX writes.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/product/convolution.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"
#include "superstep/target/pjrt/stablehlo/products.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

// "[b, f, 0, 1]": two named axes, then the spatial ones.
std::string axes_text(const char* first, const char* second, std::size_t spatial) {
  std::string text = fmt::format("[{}, {}", first, second);
  for (std::size_t i = 0; i < spatial; ++i) text += fmt::format(", {}", i);
  return text + "]";
}

// Those along which mirroring changes something.
Extents mirrored_axes(const Value& w) {
  Extents axes;
  for (int axis = 2; axis < w.rank(); ++axis)
    if (w.shape()[axis] > 1) axes.push_back(axis);
  return axes;
}

// The spatial axes, then the channels: "[0, 1, i, o]".
std::string taps_first_text(std::size_t spatial) {
  std::string text = "[";
  for (std::size_t i = 0; i < spatial; ++i) text += fmt::format("{}, ", i);
  return text + "i, o]";
}

// Two axes of channels and then taps, as taps and then channels: compilers for processors bring every kernel
// into this order, in each run where they do not know it.
Value taps_first(Emitter& emit, const Value& w, bool outputs_first) {
  Extents order;
  for (int axis = 2; axis < w.rank(); ++axis) order.push_back(axis);
  order.push_back(outputs_first ? 1 : 0);
  order.push_back(outputs_first ? 0 : 1);
  return emit.transpose(w, order);
}

std::string images_text(std::size_t spatial) { return axes_text("b", "f", spatial); }
std::string layout_text(std::size_t spatial, const std::string& kernel) {
  return images_text(spatial) + "x" + kernel + "->" + images_text(spatial);
}

ConvolutionShape convolution_shape(const op::ConvGeometry& g, const std::string& kernel) {
  ConvolutionShape shape{.layout = layout_text(g.windows.size(), kernel)};
  shape.feature_groups = g.group;
  for (const op::Window& window : g.windows) {
    shape.strides.push_back(window.stride);
    shape.pad_begin.push_back(window.pad_begin);
    shape.pad_end.push_back((window.output - 1) * window.stride + window.reach() - window.input -
                            window.pad_begin);
    shape.lhs_dilation.push_back(1);
    shape.rhs_dilation.push_back(window.dilation);
  }
  return shape;
}

Value with_bias(const Site& s, const Value& y) {
  if (!s.has(2)) return y;
  return s.emit.add(y, s.emit.broadcast(s.emit.convert(s.in(2), y.element()), y.shape(), {1}));
}

Values convolution(const Site& s) {
  const op::ConvGeometry g = op::conv_geometry(s.attributes(), s.in(0).shape(), s.in(1).shape());
  const ElementType element = product_type(s.in(0).element());
  if (!s.is_settled(1)) return {with_bias(s, convolve(s.emit, s.in(0), s.in(1), g, s.out_shape(), element))};
  const Value kernel =
      s.prepared(1, "taps first", [](Emitter& emit, const Value& w) { return taps_first(emit, w, true); });
  const ConvolutionShape shape = convolution_shape(g, taps_first_text(g.windows.size()));
  return {with_bias(s, s.emit.convolve(s.in(0), kernel, shape, s.out_shape(), element))};
}

// Weights [C, M / g, k...] as [C / g, M, k...]: groups side by side among the results' channels.
Value grouped_weights(Emitter& emit, const Value& w, const op::ConvGeometry& g) {
  if (g.group == 1) return w;
  const std::int64_t in = w.shape()[0] / g.group, out = w.shape()[1];
  Extents apart = {g.group, in, out}, together = {in, g.group * out}, order = {1, 0, 2};
  for (int axis = 2; axis < w.rank(); ++axis) {
    apart.push_back(w.shape()[axis]);
    together.push_back(w.shape()[axis]);
    order.push_back(axis + 1);
  }
  return emit.reshape(emit.transpose(emit.reshape(w, Shape(apart)), order), Shape(together));
}

Value mirrored_weights(Emitter& emit, const Value& w, const op::ConvGeometry& g) {
  return emit.reverse(grouped_weights(emit, w, g), mirrored_axes(w));
}

// The small side, with stride - 1 zeros between its elements, convolved with the mirrored kernel.
Values transposed_convolution(const Site& s) {
  const op::ConvGeometry g = op::conv_transpose_geometry(s.attributes(), s.in(0).shape(), s.in(1).shape());
  const std::size_t spatial = g.windows.size();
  const bool settled = s.is_settled(1);
  ConvolutionShape shape{
      .layout = layout_text(spatial, settled ? taps_first_text(spatial) : axes_text("i", "o", spatial))};
  shape.feature_groups = g.group;
  for (const op::Window& w : g.windows) {
    shape.strides.push_back(1);
    shape.pad_begin.push_back(w.reach() - 1 - w.pad_begin);
    shape.pad_end.push_back(w.input - (w.output - 1) * w.stride - 1 + w.pad_begin);
    shape.lhs_dilation.push_back(w.stride);
    shape.rhs_dilation.push_back(w.dilation);
  }
  const auto taps_first_mirrored = [&](Emitter& emit, const Value& w) {
    return taps_first(emit, mirrored_weights(emit, w, g), false);
  };
  const Value kernel = settled
                           ? s.prepared(1, fmt::format("mirrored, {} groups", g.group), taps_first_mirrored)
                           : mirrored_weights(s.emit, s.in(1), g);
  return {
      with_bias(s, s.emit.convolve(s.in(0), kernel, shape, s.out_shape(), product_type(s.in(0).element())))};
}

// x, whose channels are the batch, with the cotangent as a kernel of as many taps as there were results: the
// sum over the batch is that over channels.
Values weight_gradient(const Site& s) {
  const op::ConvGeometry g = op::conv_geometry(s.attributes(), s.in(0).shape(), s.out_shape());
  const std::size_t spatial = g.windows.size();
  ConvolutionShape shape{.layout = axes_text("f", "b", spatial) + "x" + axes_text("i", "o", spatial) + "->" +
                                   axes_text("f", "b", spatial)};
  shape.batch_groups = g.group;
  for (const op::Window& w : g.windows) {
    shape.strides.push_back(w.dilation);
    shape.pad_begin.push_back(w.pad_begin);
    shape.pad_end.push_back(w.reach() + (w.output - 1) * w.stride - w.input - w.pad_begin);
    shape.lhs_dilation.push_back(1);
    shape.rhs_dilation.push_back(w.stride);
  }
  return {s.emit.convolve(s.in(0), s.in(1), shape, s.out_shape(), product_type(s.in(0).element()))};
}

}  // namespace

Value convolve(Emitter& emit, const Value& x, const Value& w, const op::ConvGeometry& g, const Shape& result,
               ElementType element) {
  const ConvolutionShape shape = convolution_shape(g, axes_text("o", "i", g.windows.size()));
  return emit.convolve(x, w, shape, result, element);
}

std::span<const Lowering> convolution_lowerings() {
  static const Lowering table[] = {
      {"Conv", convolution, Inputs::as_they_are, nullptr, 1},
      {"ConvTranspose", transposed_convolution, Inputs::as_they_are, nullptr, 1},
      {"superstep.ConvWeightGradient", weight_gradient, Inputs::as_they_are},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
