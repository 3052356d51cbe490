// Integer division with a stated direction of rounding.
#pragma once

#include <concepts>
#include <cstdint>

namespace superstep {

// The largest integer that is at most a / b; b > 0.
template <std::integral T>
constexpr T floor_div(T a, T b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

// The smallest integer that is at least a / b; b > 0.
template <std::integral T>
constexpr T ceil_div(T a, T b) {
  return a / b + (a % b > 0 ? 1 : 0);
}

// Of numbers of different types.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return ceil_div<std::int64_t>(a, b); }

// The smallest multiple of b that is at least a; b > 0.
template <std::integral T>
constexpr T round_up(T a, T b) {
  return ceil_div(a, b) * b;
}

}  // namespace superstep
