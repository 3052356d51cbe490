// One element of a tensor as text: shortest decimals that read back to the same bits.
#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "superstep/base/element_type.h"

namespace superstep::graph {

// "1.0", "-0.5", "1e+20", "inf", "-inf", "nan": what a float looks like, so that it is no integer.
std::string float_text(double value);
std::string float_text(float value);
std::string float_text(f16 value);
std::string float_text(bf16 value);

// Reads one of these; false when `text` is something else or out of range.
bool parse_float(std::string_view text, double& value);
bool parse_float(std::string_view text, float& value);
bool parse_float(std::string_view text, f16& value);
bool parse_float(std::string_view text, bf16& value);

// Do these have the same bits? (Equality that tells 0 from -0 and one NaN from another.)
template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
bool parse_integer(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stopped, code] = std::from_chars(text.data(), end, value);
  return code == std::errc() && stopped == end;
}

}  // namespace superstep::graph
