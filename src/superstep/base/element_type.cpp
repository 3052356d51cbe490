#include "superstep/base/element_type.h"

#include <cmath>

namespace superstep {

std::size_t size_in_bytes(ElementType type) {
  return dispatch(type, []<class T>() { return sizeof(T); });
}

const char* name_of(ElementType type) {
  static constexpr const char* names[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16",
                                          "i8",  "u64", "u32", "u16",  "u8",  "bool"};
  return names[static_cast<int>(type)];
}

std::optional<ElementType> element_type_from_name(std::string_view name) {
  for (ElementType type : all_element_types)
    if (name == name_of(type)) return type;
  return std::nullopt;
}

bool is_floating(ElementType type) { return type <= ElementType::bf16; }

bool is_integer(ElementType type) { return !is_floating(type) && type != ElementType::boolean; }

std::uint16_t f16::round_from(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000u);
  const std::uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;   // NaN
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds past 65504, or infinite
  if (magnitude < 0x38800000u) {                        // subnormal or zero
    // 2^-24 is one unit in the last place of a subnormal: nearbyint rounds ties to even.
    const float units = std::bit_cast<float>(magnitude) * 16777216.0f;
    return sign | static_cast<std::uint16_t>(std::nearbyint(units));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return sign | static_cast<std::uint16_t>((rounded - 0x38000000u) >> 13);
}

float f16::widen(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) / 16777216.0f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

}  // namespace superstep
