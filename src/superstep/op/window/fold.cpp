#include "superstep/op/window/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/window/pooling_loop.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

std::int64_t product(const Extents& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

// The picture [N, C, image...] that blocks are put into.
Shape picture_of(const Shape& x, const Extents& image, const Extents& block) {
  require(x.rank() == 3, fmt::format("input is {}, expected [N, C * block, blocks]", to_string(x)));
  require(
      image.size() == block.size(),
      fmt::format("inputs image_shape and block_shape have {} and {} elements", image.size(), block.size()));
  for (std::int64_t extent : block)
    require(extent >= 1 && extent < 1 << 20, "input block_shape must be positive");
  for (std::int64_t extent : image) require(extent >= 1, "input image_shape must be positive");
  require(x[1] % product(block) == 0,
          fmt::format("{} rows are not a multiple of a block's {} elements", x[1], product(block)));
  Extents extents{x[0], x[1] / product(block)};
  extents.insert(extents.end(), image.begin(), image.end());
  return checked_shape(extents);
}

std::vector<ValueType> infer_col2im(const InferContext& context) {
  require_floating(context, 0, "input");
  const Extents image = context.known_integers(1, "input image_shape");
  const Extents block = context.known_integers(2, "input block_shape");
  const Shape& x = context.input(0).shape;
  const Shape picture = picture_of(x, image, block);
  std::int64_t blocks = 1;
  for (const Window& window : convolution_windows(context.attributes, image, block)) blocks *= window.output;
  require(x[2] == blocks, fmt::format("input has {} blocks, expected {}", x[2], blocks));
  return {{context.input(0).element, picture}};
}

// Where every tap of every window lies in the image, [taps * windows, 1]; of what lies outside, behind its
// end.
Tensor places_in_image(const std::vector<Window>& windows) {
  std::int64_t taps = 1, count = 1, image = 1;
  for (const Window& window : windows) taps *= window.kernel, count *= window.output, image *= window.input;
  Tensor places(ElementType::i64, {taps * count, 1});
  auto place = places.as<std::int64_t>().begin();
  for (std::int64_t i = 0; i < taps * count; ++i, ++place) {
    std::int64_t tap = i / count, output = i % count, scale = 1;
    *place = 0;
    for (std::size_t axis = windows.size(); axis-- > 0;) {
      const Window& w = windows[axis];
      const std::int64_t at = output % w.output * w.stride - w.pad_begin + tap % w.kernel * w.dilation;
      const bool inside = at >= 0 && at < w.input && *place != image;
      *place = inside ? *place + at * scale : image;
      tap /= w.kernel, output /= w.output, scale *= w.input;
    }
  }
  return places;
}

// Every element is added at its place; what is in the padding, to a row that is left out.
std::vector<Var> decompose_col2im(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const Extents image = constant_integers(context.inputs[1]), block = constant_integers(context.inputs[2]);
  const Shape picture = picture_of(x.shape(), image, block);
  const std::int64_t planes = picture[0] * picture[1], elements = product(image);
  const Tensor places = places_in_image(convolution_windows(context.attributes, image, block));
  const Var columns = transpose(reshape(x, {planes, places.element_count()}), {1, 0});
  const Var zeros = constant_of_shape(context.builder, x.element(), {elements + 1, planes});
  const Var sums = scatter_nd(zeros, context.builder.constant(places), columns, "add");
  return {reshape(transpose(slice(sums, {0}, {elements}, {0}), {1, 0}), picture)};
}

Extents per_axis(const Attributes& attributes, const char* name, std::size_t count, std::int64_t otherwise) {
  const Extents values = attributes.integers(name, Extents(count, otherwise));
  require(values.size() == count,
          fmt::format("attribute '{}' has {} elements, expected {}", name, values.size(), count));
  for (std::int64_t value : values)
    require(value >= 0 && value < std::int64_t{1} << 40, fmt::format("attribute '{}' holds {}", name, value));
  return values;
}

// What the windows of the pooling cover: the shape that indices count in.
Shape covered_shape(const Attributes& attributes, const Shape& x) {
  check_pooling_rank(x);
  const auto spatial = static_cast<std::size_t>(x.rank() - 2);
  const Extents kernel = per_axis(attributes, "kernel_shape", spatial, 1);
  const Extents strides = per_axis(attributes, "strides", spatial, 1);
  const Extents pads = per_axis(attributes, "pads", 2 * spatial, 0);
  Extents extents{x[0], x[1]};
  for (std::size_t i = 0; i < spatial; ++i)
    extents.push_back((x[static_cast<int>(i) + 2] - 1) * strides[i] - pads[i] - pads[i + spatial] +
                      kernel[i]);
  return checked_shape(extents);
}

Shape unpooled_shape(const Shape& covered, const Extents* given) {
  if (!given) return covered;
  const Shape shape = checked_shape(*given);
  require(shape.rank() == covered.rank() && shape[0] == covered[0] && shape[1] == covered[1],
          fmt::format("input output_shape is {}, expected rank {} with {} and {} in front", to_string(shape),
                      covered.rank(), covered[0], covered[1]));
  for (int axis = 2; axis < shape.rank(); ++axis)
    require(shape[axis] >= covered[axis],
            fmt::format("input output_shape is {}, smaller than the {} that the windows cover",
                        to_string(shape), to_string(covered)));
  return shape;
}

std::vector<ValueType> infer_unpool(const InferContext& context) {
  require_floating(context, 0, "X");
  require_integer(context, 1, "I");
  require_shape(context, 1, "I", context.input(0).shape);
  const Shape covered = covered_shape(context.attributes, context.input(0).shape);
  if (!context.has(2)) return {{context.input(0).element, covered}};
  const Extents given = context.known_integers(2, "input output_shape");
  return {{context.input(0).element, unpooled_shape(covered, &given)}};
}

// Where a place is named twice the values add up; ONNX leaves that open.
std::vector<Var> decompose_unpool(const DerivativeContext& context) {
  const Shape covered = covered_shape(context.attributes, context.inputs[0].shape());
  const Var y = max_pool_gradient(context.inputs[0], context.inputs[1], covered);
  if (!context.has(2)) return {y};
  const Extents given = constant_integers(context.inputs[2]);
  const Shape shape = unpooled_shape(covered, &given);
  Extents pads(static_cast<std::size_t>(2 * shape.rank()), 0);
  for (int axis = 2; axis < shape.rank(); ++axis)
    pads[static_cast<std::size_t>(shape.rank() + axis)] = shape[axis] - covered[axis];
  return {shape == covered ? y : pad(y, pads)};
}

Shape centred_shape(const Attributes& attributes, const Shape& x, const Extents& given) {
  Extents all(static_cast<std::size_t>(x.rank())), extents = x.extents();
  std::iota(all.begin(), all.end(), 0);
  const Extents axes = attributes.integers("axes", all);
  require(axes.size() == given.size(),
          fmt::format("input shape has {} elements, expected one for each of {} axes", given.size(),
                      axes.size()));
  checked_axes(axes, x.rank(), "attribute 'axes'");
  for (std::size_t i = 0; i < axes.size(); ++i)
    extents[static_cast<std::size_t>(checked_axis(axes[i], x.rank()))] = given[i];
  return checked_shape(extents);
}

std::vector<ValueType> infer_centred(const InferContext& context) {
  const ValueType& x = context.input(0);
  return {{x.element, centred_shape(context.attributes, x.shape, context.known_integers(1, "input shape"))}};
}

// Odd elements: a crop keeps one more after the middle, padding adds one more at the end.
std::vector<Var> decompose_centred(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  const Shape target = centred_shape(context.attributes, x.shape(), constant_integers(context.inputs[1]));
  const int rank = x.shape().rank();
  Extents pads(static_cast<std::size_t>(2 * rank), 0);
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t missing = target[axis] - x.shape()[axis];
    const std::int64_t before = missing / 2;  // toward zero, both ways
    pads[static_cast<std::size_t>(axis)] = before;
    pads[static_cast<std::size_t>(axis + rank)] = missing - before;
  }
  return {pad(x, pads)};
}

}  // namespace

Var col2im(Var x, const Extents& image, const Extents& block, const ConvAttributes& a) {
  Attributes attributes;
  if (!a.strides.empty()) attributes.set("strides", a.strides);
  if (!a.dilations.empty()) attributes.set("dilations", a.dilations);
  if (!a.pads.empty()) attributes.set("pads", a.pads);
  Builder& b = x.builder();
  return b.node1("Col2Im", {x, b.integers(image), b.integers(block)}, attributes);
}

Var max_unpool(Var x, Var indices, const PoolAttributes& attributes, const Shape& shape) {
  const Var output_shape = shape.rank() ? x.builder().integers(shape.extents()) : Var();
  require(attributes.auto_pad == "NOTSET" && !attributes.ceil_mode && attributes.dilations.empty(),
          "MaxUnpool has windows of strides and pads alone");
  Attributes own = to_attributes(attributes);
  for (const char* beyond : {"auto_pad", "ceil_mode"}) own.erase(beyond);
  return x.builder().node1("MaxUnpool", {x, indices, output_shape}, own);
}

Var center_crop_pad(Var x, const Extents& shape, const Extents& axes) {
  Attributes attributes;
  if (!axes.empty()) attributes.set("axes", axes);
  return x.builder().node1("CenterCropPad", {x, x.builder().integers(shape)}, attributes);
}

std::span<const Definition> fold_operators() {
  static const Definition definitions[] = {
      composite<decompose_col2im>({"Col2Im", 18, 3, 3, 1, 0b110u}, infer_col2im,
                                  {.elements = Elements::floating,
                                   .work = WorkKind::elementwise,
                                   .attributes = "dilations pads strides"}),
      composite<decompose_unpool>({"MaxUnpool", 11, 2, 3, 1, 0b100u}, infer_unpool,
                                  {.elements = Elements::floating,
                                   .work = WorkKind::elementwise,
                                   .attributes = "kernel_shape pads strides"}),
      composite<decompose_centred>(
          {"CenterCropPad", 18, 2, 2, 1, 0b10u}, infer_centred,
          {.elements = Elements::any, .work = WorkKind::elementwise, .attributes = "axes"}),
  };
  return definitions;
}

}  // namespace superstep::op
