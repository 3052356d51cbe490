// Elements in the wide types that reference evaluation computes in: double for floating types, 64-bit
// integers for the others; and back, rounded once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/op/core/strided.h"

namespace superstep::op {

// Calls f.template operator()<W>() with the wide type of `type`; bool is unsigned.
template <class F>
decltype(auto) dispatch_wide(ElementType type, F&& f) {
  return dispatch(type, [&]<class T>() -> decltype(auto) {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
      return f.template operator()<std::int64_t>();
    else if constexpr (std::is_integral_v<T>)
      return f.template operator()<std::uint64_t>();
    else
      return f.template operator()<double>();
  });
}

// Rounds to odd: a later rounding to a narrower type then gives what one rounding would have given
// (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", IEEE Trans. Computers 57, 2008).
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

template <class T, class W>
T narrow_one(W value) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
    return T(round_to_odd(static_cast<double>(value)));
  else if constexpr (std::is_same_v<T, bool>)
    return value != W{};
  else
    return static_cast<T>(value);
}

template <class W, class T>
W widen_one(T value) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
    return static_cast<W>(static_cast<float>(value));
  else
    return static_cast<W>(value);
}

template <class W>
std::vector<W> widen(const Tensor& tensor) {
  return dispatch(tensor.type(), [&]<class T>() {
    const auto source = tensor.as<T>();
    std::vector<W> result(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) result[i] = widen_one<W>(source[i]);
    return result;
  });
}

// The elements broadcast to `shape`.
template <class W>
std::vector<W> widen_to(const Tensor& tensor, const Shape& shape) {
  std::vector<W> values = widen<W>(tensor);
  if (tensor.shape() == shape) return values;
  std::vector<W> result(static_cast<std::size_t>(shape.element_count()));
  for_each_strided(shape, broadcast_strides(tensor.shape(), shape), 0,
                   [&](std::int64_t i, std::int64_t offset) {
                     result[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(offset)];
                   });
  return result;
}

template <class W>
void narrow(std::span<const W> values, Tensor& target) {
  dispatch(target.type(), [&]<class T>() {
    auto elements = target.as<T>();
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = narrow_one<T>(values[i]);
  });
}
template <class W>
void narrow(const std::vector<W>& values, Tensor& target) {
  narrow(std::span<const W>(values), target);
}

}  // namespace superstep::op
