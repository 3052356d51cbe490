#include "superstep/onnx/wire/element.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "superstep/base/error.h"

namespace superstep::onnx {
namespace {

struct Row {
  std::int64_t data_type;
  const char* name;
  std::optional<ElementType> type, held;
};

constexpr Row exact(std::int64_t data_type, const char* name, ElementType type) {
  return {data_type, name, type, type};
}
constexpr Row widened(std::int64_t data_type, const char* name, ElementType held) {
  return {data_type, name, std::nullopt, held};
}
constexpr Row none(std::int64_t data_type, const char* name) {
  return {data_type, name, std::nullopt, std::nullopt};
}

constexpr Row rows[] = {
    exact(type_f32, "f32", ElementType::f32),
    exact(type_u8, "u8", ElementType::u8),
    exact(type_i8, "i8", ElementType::i8),
    exact(type_u16, "u16", ElementType::u16),
    exact(type_i16, "i16", ElementType::i16),
    exact(type_i32, "i32", ElementType::i32),
    exact(type_i64, "i64", ElementType::i64),
    none(type_string, "string"),
    exact(type_bool, "bool", ElementType::boolean),
    exact(type_f16, "f16", ElementType::f16),
    exact(type_f64, "f64", ElementType::f64),
    exact(type_u32, "u32", ElementType::u32),
    exact(type_u64, "u64", ElementType::u64),
    none(type_complex64, "complex64"),
    none(type_complex128, "complex128"),
    exact(type_bf16, "bf16", ElementType::bf16),
    widened(type_f8e4m3fn, "f8e4m3fn", ElementType::f32),
    widened(type_f8e4m3fnuz, "f8e4m3fnuz", ElementType::f32),
    widened(type_f8e5m2, "f8e5m2", ElementType::f32),
    widened(type_f8e5m2fnuz, "f8e5m2fnuz", ElementType::f32),
    widened(type_u4, "u4", ElementType::u8),
    widened(type_i4, "i4", ElementType::i8),
    widened(type_f4e2m1, "f4e2m1", ElementType::f32),
    widened(type_f8e8m0, "f8e8m0", ElementType::f32),
    widened(type_u2, "u2", ElementType::u8),
    widened(type_i2, "i2", ElementType::i8),
};

const Row* find(std::int64_t data_type) {
  for (const Row& row : rows)
    if (row.data_type == data_type) return &row;
  return nullptr;
}

struct Format {
  int mantissa_bits, bias;
  bool no_negative_zero;  // 0x80 is the only NaN
  bool has_infinity;
};

float decode(const Format& format, unsigned bits, int width) {
  const unsigned sign = bits >> (width - 1) & 1u;
  const unsigned magnitude = bits & ((1u << (width - 1)) - 1);
  const unsigned exponent = magnitude >> format.mantissa_bits;
  const unsigned mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  const int shift = -format.bias - format.mantissa_bits;
  const double value =
      exponent == 0 ? std::ldexp(mantissa, 1 + shift)
                    : std::ldexp(mantissa + (1u << format.mantissa_bits), static_cast<int>(exponent) + shift);
  return static_cast<float>(sign ? -value : value);
}

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

float decode8(const Format& format, unsigned bits) {
  const unsigned magnitude = bits & 0x7f;
  if (format.no_negative_zero) return bits == 0x80 ? nan_value : decode(format, bits, 8);
  if (!format.has_infinity) return magnitude == 0x7f ? nan_value : decode(format, bits, 8);
  if (magnitude > 0x7c) return nan_value;
  if (magnitude == 0x7c)
    return bits & 0x80 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  return decode(format, bits, 8);
}

}  // namespace

std::optional<ElementType> element_type(std::int64_t data_type) {
  const Row* row = find(data_type);
  return row ? row->type : std::nullopt;
}

std::optional<ElementType> held_type(std::int64_t data_type) {
  const Row* row = find(data_type);
  return row ? row->held : std::nullopt;
}

std::string element_name(std::int64_t data_type) {
  const Row* row = find(data_type);
  return row ? row->name : fmt::format("type {}", data_type);
}

std::optional<DataType> data_type_from_name(std::string_view name) {
  static constexpr std::pair<std::string_view, DataType> names[] = {
      {"FLOAT", type_f32},    {"UINT8", type_u8},   {"INT8", type_i8},    {"UINT16", type_u16},
      {"INT16", type_i16},    {"INT32", type_i32},  {"INT64", type_i64},  {"BOOL", type_bool},
      {"FLOAT16", type_f16},  {"DOUBLE", type_f64}, {"UINT32", type_u32}, {"UINT64", type_u64},
      {"STRING", type_string}};
  for (const auto& [known, type] : names)
    if (known == name) return type;
  return std::nullopt;
}

ElementType required_element_type(std::int64_t data_type) {
  if (const auto type = element_type(data_type)) return *type;
  throw Error(ErrorCode::unsupported,
              fmt::format("elements of type {} have no place in a graph", element_name(data_type)));
}

float small_float(std::int64_t data_type, unsigned bits) {
  switch (data_type) {
    case type_f8e4m3fn: return decode8({3, 7, false, false}, bits);
    case type_f8e4m3fnuz: return decode8({3, 8, true, false}, bits);
    case type_f8e5m2: return decode8({2, 15, false, true}, bits);
    case type_f8e5m2fnuz: return decode8({2, 16, true, false}, bits);
    case type_f4e2m1: return decode({1, 1, false, false}, bits & 0xf, 4);
    case type_f8e8m0:
      return bits == 0xff ? nan_value : static_cast<float>(std::ldexp(1.0, static_cast<int>(bits) - 127));
    default: throw Error(ErrorCode::internal, "not a small floating-point type");
  }
}

}  // namespace superstep::onnx
