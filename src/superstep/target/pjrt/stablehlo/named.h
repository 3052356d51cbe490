// Lowerings that are one operation of StableHLO, by its name.
#pragma once

#include <algorithm>
#include <utility>

#include "superstep/target/pjrt/stablehlo/lowering.h"

namespace superstep::target::stablehlo {

template <std::size_t size>
struct Name {
  char text[size];
  constexpr Name(const char (&given)[size]) { std::copy_n(given, size, text); }  // NOLINT: it stands for it
};

// Inputs 0 and 1 in the shape of the result.
inline std::pair<Value, Value> both(const Site& s) {
  return {s.emit.expand(s.in(0), s.out_shape()), s.emit.expand(s.in(1), s.out_shape())};
}

template <Name name>
std::vector<Value> unary(const Site& s) {
  return {s.emit.unary(name.text, s.in(0))};
}

template <Name name>
std::vector<Value> binary(const Site& s) {
  const auto [a, b] = both(s);
  return {s.emit.binary(name.text, a, b)};
}

template <Name direction>
std::vector<Value> comparison(const Site& s) {
  const auto [a, b] = both(s);
  return {s.emit.compare(direction.text, a, b)};
}

}  // namespace superstep::target::stablehlo
