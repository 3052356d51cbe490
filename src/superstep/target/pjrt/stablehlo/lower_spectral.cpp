// Fourier transforms.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/product/spectral.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

// How many axes one operation transforms (StableHLO's fft).
constexpr std::size_t most_axes = 3;

Value complex_of(Emitter& emit, const Value& re, const Value& im) {
  return emit.one("complex", {re, im}, {re.element(), re.shape(), true});
}
Value part(Emitter& emit, const Value& z, std::string_view name) {
  return emit.one(name, {z}, {z.element(), z.shape()});
}

// Of the last axes; the inverse divides by their number of elements.
Value transformed_last(Emitter& emit, const Value& z, std::size_t axes, bool inverse) {
  const Extents lengths(z.shape().end() - static_cast<std::ptrdiff_t>(axes), z.shape().end());
  return emit.one("fft", {z}, z.type,
                  fmt::format("fft_type = #stablehlo<fft_type {}>, fft_length = {}", inverse ? "IFFT" : "FFT",
                              array_text(lengths)));
}

// Along any axes: brought to the end and back.
Value transformed(Emitter& emit, const Value& z, const Extents& axes, bool inverse) {
  Extents order, back(static_cast<std::size_t>(z.rank()));
  for (int axis = 0; axis < z.rank(); ++axis)
    if (std::ranges::find(axes, axis) == axes.end()) order.push_back(axis);
  order.insert(order.end(), axes.begin(), axes.end());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  Value moved = emit.transpose(z, order);
  return emit.transpose(transformed_last(emit, moved, axes.size(), inverse), back);
}

// Cut, or filled up with zeros, to so many elements along an axis.
Value fitted(Emitter& emit, const Value& x, int axis, std::int64_t length) {
  const std::int64_t extent = x.shape()[axis];
  if (extent >= length) return emit.cut(x, axis, 0, length);
  Extents low(static_cast<std::size_t>(x.rank()), 0), high = low;
  high[static_cast<std::size_t>(axis)] = length - extent;
  return emit.pad(x, emit.splat(x.element(), {}, 0), low, high);
}

// All bins of a transform of real numbers, from those that are given: bin n - k is the conjugate of bin k.
Value mirrored(Emitter& emit, const Value& x, int axis, std::int64_t length, bool imaginary) {
  const Value half = fitted(emit, x, axis, length / 2 + 1);
  const std::int64_t rest = length - (length / 2 + 1);
  if (rest == 0) return half;
  const Value tail = emit.reverse(emit.cut(half, axis, 1, rest + 1), {axis});
  const Value parts[] = {half, imaginary ? emit.negate(tail) : tail};
  return emit.concatenate(parts, axis);
}

op::DftGeometry geometry_of(const Site& s) {
  const std::int64_t length = s.has(1) ? s.integers(1, "dft_length").at(0) : 0;
  const std::int64_t axis = s.has(2) ? s.integers(2, "axis").at(0) : 0;
  return op::dft_geometry(s.attributes(), s.in(0).shape(), s.has(1) ? &length : nullptr,
                          s.has(2) ? &axis : nullptr);
}

Values dft(const Site& s) {
  const op::DftGeometry t = geometry_of(s);
  const Value x = s.in(0);
  const int last = x.rank() - 1;
  const Shape parts_shape(Extents(x.shape().begin(), x.shape().end() - 1));
  const auto side = [&](std::int64_t number) {
    if (number >= x.shape()[last]) return s.emit.splat(x.element(), parts_shape, 0);
    return s.emit.reshape(s.emit.cut(x, last, number, number + 1), parts_shape);
  };
  const auto whole = [&](const Value& given, bool imaginary) {
    return t.real ? mirrored(s.emit, given, t.axis, t.length, imaginary)
                  : fitted(s.emit, given, t.axis, t.length);
  };
  const Value z = complex_of(s.emit, whole(side(0), false), whole(side(1), true));
  const Value bins = s.emit.cut(transformed(s.emit, z, {t.axis}, t.inverse), t.axis, 0, t.bins);
  Extents pair = bins.shape().extents();
  pair.push_back(1);
  const Value re = s.emit.reshape(part(s.emit, bins, "real"), Shape(pair));
  if (t.real) return {re};
  const Value both[] = {re, s.emit.reshape(part(s.emit, bins, "imag"), Shape(pair))};
  return {s.emit.concatenate(both, last)};
}

// A factor takes back the division of the inverse.
Values fourier(const Site& s) {
  const Value re = s.in(0);
  const bool inverse = s.attributes().integer("inverse", 0) != 0;
  double scale = s.attributes().number("scale", 1);
  Extents axes;
  for (std::int64_t axis : s.attributes().integers("axes")) axes.push_back(normalize_axis(axis, re.rank()));
  std::ranges::sort(axes);
  Value z = complex_of(s.emit, re, s.has(1) ? s.in(1) : s.emit.like(re, 0));
  for (std::size_t begin = 0; begin < axes.size(); begin += most_axes) {
    const std::size_t end = std::min(axes.size(), begin + most_axes);
    z = transformed(s.emit, z,
                    Extents(axes.begin() + static_cast<std::ptrdiff_t>(begin),
                            axes.begin() + static_cast<std::ptrdiff_t>(end)),
                    inverse);
  }
  for (std::int64_t axis : axes)
    if (inverse) scale *= static_cast<double>(re.shape()[static_cast<int>(axis)]);
  Values parts = {part(s.emit, z, "real"), part(s.emit, z, "imag")};
  for (Value& value : parts)
    if (scale != 1) value = s.emit.multiply(value, scale);
  return parts;
}

}  // namespace

std::span<const Lowering> spectral_lowerings() {
  static const Lowering table[] = {
      {"DFT", dft},
      {"superstep.Fourier", fourier},
  };
  return table;
}

}  // namespace superstep::target::stablehlo
