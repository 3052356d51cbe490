// Lowerings that are one operation of StableHLO, by its name.
#pragma once

#include <algorithm>
#include <utility>

#include "superstep/target/pjrt/stablehlo/lowering.h"

namespace superstep::target::stablehlo {

template <std::size_t Size>
struct Name {
  char text[Size];
  constexpr Name(const char (&given)[Size]) { std::copy_n(given, Size, text); }  // NOLINT: it stands for it
};

// Inputs 0 and 1 in the shape of the result.
inline std::pair<Value, Value> both(const Site& s) {
  return {s.emit.expand(s.in(0), s.out_shape()), s.emit.expand(s.in(1), s.out_shape())};
}

template <Name Op>
std::vector<Value> unary(const Site& s) {
  return {s.emit.unary(Op.text, s.in(0))};
}

template <Name Op>
std::vector<Value> binary(const Site& s) {
  const auto [a, b] = both(s);
  return {s.emit.binary(Op.text, a, b)};
}

template <Name Direction>
std::vector<Value> comparison(const Site& s) {
  const auto [a, b] = both(s);
  return {s.emit.compare(Direction.text, a, b)};
}

}  // namespace superstep::target::stablehlo
