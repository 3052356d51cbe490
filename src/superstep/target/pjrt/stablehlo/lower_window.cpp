// Pooling and resampling.
#include <cmath>
#include <limits>

#include "superstep/op/window/pooling.h"
#include "superstep/op/window/resize_axis.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;
using op::Window;

std::vector<Window> windows_of(const Site& s, const Shape& x) {
  return op::pooling_windows(s.attributes(), op::spatial_extents(x));
}

// Batch and channels stand still.
Emitter::Windows sliding(const std::vector<Window>& windows) {
  Emitter::Windows w{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
  for (const Window& window : windows) {
    w.sizes.push_back(window.kernel);
    w.strides.push_back(window.stride);
    w.base_dilations.push_back(1);
    w.dilations.push_back(window.dilation);
    w.pad_begin.push_back(window.pad_begin);
    const std::int64_t reached = (window.output - 1) * window.stride + window.reach();
    w.pad_end.push_back(std::max<std::int64_t>(reached - window.input - window.pad_begin, 0));
  }
  return w;
}

Shape pooled(const Shape& x, const std::vector<Window>& windows) {
  Extents extents = {x[0], x[1]};
  for (const Window& window : windows) extents.push_back(window.output);
  return Shape(extents);
}

// --- the largest

// What padding is: never larger than an element.
Value least(const Site& s, ElementType element) {
  if (!is_floating(element)) return s.emit.constant(neutral(Fold::largest, element));
  Tensor value(element, Shape{});
  const Tensor wide = Tensor::scalar(std::numeric_limits<double>::lowest());
  value = dispatch(element, [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>)
      return Tensor::scalar(std::numeric_limits<T>::lowest());
    else
      return wide.converted(element);
  });
  return s.emit.constant(value);
}

// The number of each element in the whole of x; with storage_order 1 a position within a plane counts columns
// first.
Value positions(const Site& s, const Shape& x) {
  const bool columns_first = s.attributes().integer("storage_order", 0) != 0;
  Extents steps = x.row_major_strides();
  std::int64_t step = 1;
  for (int axis = 2; columns_first && axis < x.rank(); ++axis) {
    steps[static_cast<std::size_t>(axis)] = step;
    step *= x[axis];
  }
  Value sum = s.emit.splat(ElementType::i64, x, 0);
  for (int axis = 0; axis < x.rank(); ++axis)
    sum = s.emit.add(sum, s.emit.multiply(s.emit.iota(ElementType::i64, x, axis),
                                          static_cast<double>(steps[static_cast<std::size_t>(axis)])));
  return sum;
}

// Pairs of an element and its row-major number, which decides among equals, and its stored number.
Values largest_with_position(const Site& s, const std::vector<Window>& windows) {
  const Value x = s.in(0);
  const Shape& shape = x.shape();
  Value number = s.emit.splat(ElementType::i64, shape, 0);
  const Extents strides = shape.row_major_strides();
  for (int axis = 0; axis < shape.rank(); ++axis)
    number =
        s.emit.add(number, s.emit.multiply(s.emit.iota(ElementType::i64, shape, axis),
                                           static_cast<double>(strides[static_cast<std::size_t>(axis)])));
  const Value xs[] = {x, number, positions(s, shape)};
  const Value far = s.emit.constant(neutral(Fold::smallest, ElementType::i64));
  const Value starts[] = {least(s, x.element()), far, s.emit.splat(ElementType::i64, Shape{}, 0)};
  const Values found =
      s.emit.reduce_window(xs, starts, sliding(windows), pooled(shape, windows), [&](const Values& in) {
        const Value larger = s.emit.compare("GT", in[3], in[0]), same = s.emit.compare("EQ", in[3], in[0]);
        const Value first = s.emit.binary("and", same, s.emit.compare("LT", in[4], in[1]));
        const Value takes = s.emit.binary("or", larger, first);
        return Values{s.emit.select(takes, in[3], in[0]), s.emit.select(takes, in[4], in[1]),
                      s.emit.select(takes, in[5], in[2])};
      });
  return {found[0], found[2]};
}

Values max_pool(const Site& s) {
  const std::vector<Window> windows = windows_of(s, s.in(0).shape());
  if (s.wants(1)) return largest_with_position(s, windows);
  const Value x = s.in(0), start = least(s, x.element());
  return s.emit.reduce_window(std::span(&x, 1), std::span(&start, 1), sliding(windows), s.out_shape(),
                              [&](const Values& pair) { return Values{s.emit.maximum(pair[0], pair[1])}; });
}

// --- sums

Value window_sum(const Site& s, const Value& x, const std::vector<Window>& windows) {
  return s.emit.reduce_window(x, sliding(windows), pooled(x.shape(), windows), Fold::sum);
}

// The number of elements that each average is over, for every plane.
Value counts(const Site& s, const std::vector<Window>& windows, const Shape& shape, ElementType element) {
  Extents extents, axes;
  for (const Window& window : windows) {
    extents.push_back(window.output);
    axes.push_back(static_cast<std::int64_t>(extents.size()) + 1);
  }
  const Tensor numbers =
      Tensor::from(Shape(extents), op::average_counts(s.attributes(), windows)).converted(element);
  return s.emit.broadcast(s.emit.constant(numbers), shape, axes);
}

Values average_pool(const Site& s) {
  const std::vector<Window> windows = windows_of(s, s.in(0).shape());
  const Value sum = window_sum(s, s.in(0), windows);
  return {s.emit.divide(sum, counts(s, windows, sum.shape(), sum.element()))};
}

// Every share added to the elements it came from: a sum over windows of the shares with zeros between them.
Values average_pool_gradient(const Site& s) {
  const std::vector<Window> windows = windows_of(s, s.out_shape());
  const Value dy = s.in(0);
  const Value shares = s.emit.divide(dy, counts(s, windows, dy.shape(), dy.element()));
  Extents low = {0, 0}, high = {0, 0}, interior = {0, 0};
  std::vector<Window> back;
  for (const Window& w : windows) {
    low.push_back(w.reach() - 1 - w.pad_begin);
    high.push_back(w.input - (w.output - 1) * w.stride - 1 + w.pad_begin);
    interior.push_back(w.stride - 1);
    back.push_back(
        {.input = w.input + w.reach() - 1, .output = w.input, .kernel = w.kernel, .dilation = w.dilation});
  }
  const Value zero = s.emit.splat(dy.element(), Shape{}, 0);
  return {window_sum(s, s.emit.pad(shares, zero, low, high, interior), back)};
}

// (sum |x|^p)^(1/p).
Values lp_pool(const Site& s) {
  const std::int64_t p = s.attributes().integer("p", 2);
  const Value x = s.in(0), size = s.emit.unary("abs", x);
  const Value power = p == 1   ? size
                      : p == 2 ? s.emit.multiply(x, x)
                               : s.emit.binary("power", size, s.emit.like(x, static_cast<double>(p)));
  const Value sum = window_sum(s, power, windows_of(s, x.shape()));
  if (p == 1) return {sum};
  if (p == 2) return {s.emit.unary("sqrt", sum)};
  return {s.emit.binary("power", sum, s.emit.like(sum, 1.0 / static_cast<double>(p)))};
}

// --- resampling: along each axis a product with the matrix of its weights

bool copies(const op::ResizeRows& rows) {
  for (const op::ResizeRow& row : rows) {
    int taken = 0;
    for (const op::ResizeTap& tap : row.taps) taken += tap.weight != 0;
    if (row.outside || taken != 1) return false;
    for (const op::ResizeTap& tap : row.taps)
      if (tap.weight != 0 && tap.weight != 1) return false;
  }
  return true;
}

Value copied_along(const Site& s, const Value& x, int axis, const op::ResizeRows& rows) {
  Extents sources;
  for (const op::ResizeRow& row : rows)
    for (const op::ResizeTap& tap : row.taps)
      if (tap.weight != 0) sources.push_back(tap.position);
  return s.emit.take(x, sources, axis);
}

Value resampled_along(const Site& s, const Value& x, int axis, const op::ResizeRows& rows,
                      double extrapolation) {
  if (copies(rows)) return copied_along(s, x, axis, rows);
  const auto count = static_cast<std::int64_t>(rows.size());
  Tensor weights(ElementType::f64, {count, x.shape()[axis]}), outside(ElementType::f64, {count});
  for (std::int64_t o = 0; o < count; ++o) {
    const op::ResizeRow& row = rows[static_cast<std::size_t>(o)];
    outside.set(o, row.outside ? extrapolation : 0);
    for (const op::ResizeTap& tap : row.taps) {
      const std::int64_t at = o * x.shape()[axis] + tap.position;
      weights.set(at, weights.at(at) + tap.weight);
    }
  }
  // The new axis comes last and goes back to its place.
  Extents result, order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) result.push_back(x.shape()[i]);
  result.push_back(count);
  for (int i = 0; i < x.rank(); ++i) order.push_back(i < axis ? i : i == axis ? x.rank() - 1 : i - 1);
  const Value matrix = s.emit.constant(weights.converted(x.element()));
  const Value product = s.emit.dot(x, matrix, {{}, {}, {axis}, {1}}, Shape(result), x.element());
  const Value moved = s.emit.transpose(product, order);
  const Value added = s.emit.constant(outside.converted(x.element()));
  return s.emit.add(moved, s.emit.broadcast(added, moved.shape(), {axis}));
}

Values resize(const Site& s) {
  std::vector<const Tensor*> known;
  for (std::size_t i = 0; i < s.node.inputs.size(); ++i) known.push_back(s.known(i));
  const auto axes = op::resize_rows_of(s.node.op, s.attributes(), s.in(0).shape(), known);
  // Whole numbers are resampled as the definition does it, in f64, and cut off.
  const bool floating = is_floating(s.in(0).element());
  Value x = floating ? s.in(0) : s.emit.convert(s.in(0), ElementType::f64);
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    if (!axes[axis].empty())
      x = resampled_along(s, x, static_cast<int>(axis), axes[axis],
                          s.attributes().number("extrapolation_value", 0));
  return {x};
}

}  // namespace

std::span<const Lowering> window_lowerings() {
  static const Lowering table[] = {
      {"MaxPool", max_pool},
      {"AveragePool", average_pool},
      {"superstep.AveragePoolGradient", average_pool_gradient},
      {"LpPool", lp_pool},
      {"Resize", resize},
      {"superstep.ResizeGradient", resize},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
