#include "superstep/numerics/format.h"

#include <limits>

namespace superstep::numerics {
namespace {

struct NamedFormat {
  const char* name;
  Format format;
  FormatFacts facts;
};

// IEEE 754 binary32 and binary16; bfloat16 and TF32 with the exponents of binary32; E5M2 and E4M3 of the Open
// Compute Project's 8-bit formats (E4M3 has no infinities).
constexpr NamedFormat formats[] = {
    {"f32", Format::f32, {24, -126, std::numeric_limits<float>::max(), true}},
    {"tf32", Format::tf32, {11, -126, 0x1.ffcp127f, true}},
    {"bf16", Format::bf16, {8, -126, 0x1.fep127f, true}},
    {"f16", Format::f16, {11, -14, 65504.0f, true}},
    {"e5m2", Format::e5m2, {3, -14, 57344.0f, true}},
    {"e4m3", Format::e4m3, {4, -6, 448.0f, false}},
};

constexpr struct {
  const char* name;
  Rounding rounding;
} roundings[] = {{"nearest", Rounding::nearest},
                 {"nearest-away", Rounding::nearest_away},
                 {"truncate", Rounding::truncate},
                 {"stochastic", Rounding::stochastic}};

}  // namespace

FormatFacts facts_of(Format format) { return formats[static_cast<std::size_t>(format)].facts; }
const char* name_of(Format format) { return formats[static_cast<std::size_t>(format)].name; }
const char* name_of(Rounding rounding) { return roundings[static_cast<std::size_t>(rounding)].name; }

std::optional<Format> format_from_name(std::string_view name) {
  for (const NamedFormat& each : formats)
    if (each.name == name) return each.format;
  return {};
}

std::optional<Rounding> rounding_from_name(std::string_view name) {
  for (const auto& each : roundings)
    if (each.name == name) return each.rounding;
  return {};
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const NamedFormat& each : formats) names.emplace_back(each.name);
  return names;
}

std::vector<std::string> rounding_names() {
  std::vector<std::string> names;
  for (const auto& each : roundings) names.emplace_back(each.name);
  return names;
}

}  // namespace superstep::numerics
