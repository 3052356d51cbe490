// Number formats of machines, as sets of f32 values, and the ways of rounding to them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::numerics {

enum class Format : std::uint8_t { f32, tf32, bf16, f16, e5m2, e4m3 };

enum class Rounding : std::uint8_t {
  nearest,       // ties to even
  nearest_away,  // ties away from zero
  truncate,      // toward zero
  stochastic,    // up with the probability of what is cut off
};

// Every value of a format is one of f32.
struct FormatFacts {
  int digits;        // of the significand, the hidden one counted
  int min_exponent;  // of the smallest normal number: 2^min_exponent
  float largest;     // finite
  bool infinities;   // without them what is too large becomes NaN
};
FormatFacts facts_of(Format format);
const char* name_of(Format format);  // "f32", "tf32", "bf16", "f16", "e5m2", "e4m3"
const char* name_of(Rounding rounding);
std::optional<Format> format_from_name(std::string_view name);
std::optional<Rounding> rounding_from_name(std::string_view name);
std::vector<std::string> format_names();
std::vector<std::string> rounding_names();

// How a value becomes one of a format.
struct Narrowing {
  Format format = Format::f32;
  Rounding rounding = Rounding::nearest;
  bool flushes = false;    // subnormal results become zero
  bool saturates = false;  // what is too large becomes the largest number

  bool keeps_all() const { return format == Format::f32 && !flushes; }
  friend bool operator==(const Narrowing&, const Narrowing&) = default;
};

}  // namespace superstep::numerics
