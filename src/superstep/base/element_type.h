// Element types of tensors, and the two 16-bit floating-point formats that C++23 compilers of today lack.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "superstep/base/error.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep {

enum class ElementType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
};

inline constexpr ElementType all_element_types[] = {
    ElementType::f64, ElementType::f32, ElementType::f16,    ElementType::bf16, ElementType::i64,
    ElementType::i32, ElementType::i16, ElementType::i8,     ElementType::u64,  ElementType::u32,
    ElementType::u16, ElementType::u8,  ElementType::boolean};

std::size_t size_in_bytes(ElementType type);
const char* name_of(ElementType type);  // "f32", "bf16", "i64", "bool", ...
std::optional<ElementType> element_type_from_name(std::string_view name);
bool is_floating(ElementType type);
bool is_integer(ElementType type);  // signed or unsigned, not bool

// bfloat16: the upper half of an f32. Conversion rounds to nearest, ties to even; NaN stays NaN.
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float value) : bits(round_from(value)) {}
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  static std::uint16_t round_from(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
    return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  friend bool operator==(bf16, bf16) = default;
};

// IEEE 754 binary16. Conversion rounds to nearest, ties to even; overflow gives infinity.
struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  explicit f16(float value) : bits(round_from(value)) {}
  explicit operator float() const { return widen(bits); }
  static std::uint16_t round_from(float value);
  static float widen(std::uint16_t bits);
  friend bool operator==(f16, f16) = default;
};

template <class T>
struct element_type_of_trait;
#define SUPERSTEP_ELEMENT(cpp, name)                        \
  template <>                                               \
  struct element_type_of_trait<cpp> {                       \
    static constexpr ElementType value = ElementType::name; \
  };
SUPERSTEP_ELEMENT(double, f64)
SUPERSTEP_ELEMENT(float, f32)
SUPERSTEP_ELEMENT(f16, f16)
SUPERSTEP_ELEMENT(bf16, bf16)
SUPERSTEP_ELEMENT(std::int64_t, i64)
SUPERSTEP_ELEMENT(std::int32_t, i32)
SUPERSTEP_ELEMENT(std::int16_t, i16)
SUPERSTEP_ELEMENT(std::int8_t, i8)
SUPERSTEP_ELEMENT(std::uint64_t, u64)
SUPERSTEP_ELEMENT(std::uint32_t, u32)
SUPERSTEP_ELEMENT(std::uint16_t, u16)
SUPERSTEP_ELEMENT(std::uint8_t, u8)
SUPERSTEP_ELEMENT(bool, boolean)
#undef SUPERSTEP_ELEMENT

template <class T>
inline constexpr ElementType element_type_of = element_type_of_trait<T>::value;

// Calls `f.template operator()<T>()` with the C++ type of `type`.
template <class F>
decltype(auto) dispatch(ElementType type, F&& f) {
  switch (type) {
    case ElementType::f64: return f.template operator()<double>();
    case ElementType::f32: return f.template operator()<float>();
    case ElementType::f16: return f.template operator()<f16>();
    case ElementType::bf16: return f.template operator()<bf16>();
    case ElementType::i64: return f.template operator()<std::int64_t>();
    case ElementType::i32: return f.template operator()<std::int32_t>();
    case ElementType::i16: return f.template operator()<std::int16_t>();
    case ElementType::i8: return f.template operator()<std::int8_t>();
    case ElementType::u64: return f.template operator()<std::uint64_t>();
    case ElementType::u32: return f.template operator()<std::uint32_t>();
    case ElementType::u16: return f.template operator()<std::uint16_t>();
    case ElementType::u8: return f.template operator()<std::uint8_t>();
    case ElementType::boolean: return f.template operator()<bool>();
  }
  throw Error(ErrorCode::internal, "element type out of range");
}

}  // namespace superstep

#pragma GCC visibility pop
