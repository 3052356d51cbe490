// Element types of ONNX files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "superstep/base/element_type.h"

namespace superstep::onnx {

// TensorProto.DataType (onnx.proto): the numbers are the format.
enum DataType : std::int64_t {
  type_f32 = 1,
  type_u8 = 2,
  type_i8 = 3,
  type_u16 = 4,
  type_i16 = 5,
  type_i32 = 6,
  type_i64 = 7,
  type_string = 8,
  type_bool = 9,
  type_f16 = 10,
  type_f64 = 11,
  type_u32 = 12,
  type_u64 = 13,
  type_complex64 = 14,
  type_complex128 = 15,
  type_bf16 = 16,
  type_f8e4m3fn = 17,
  type_f8e4m3fnuz = 18,
  type_f8e5m2 = 19,
  type_f8e5m2fnuz = 20,
  type_u4 = 21,
  type_i4 = 22,
  type_f4e2m1 = 23,
  type_f8e8m0 = 24,
  type_u2 = 25,
  type_i2 = 26,
};

// The element type a graph has for it; empty where there is none.
std::optional<ElementType> element_type(std::int64_t data_type);

// What constants of the type are read as: the type itself, or for those of 2, 4 and 8 bits that a graph does
// not have, the next larger that holds every value exactly (i2, i4 -> i8; u2, u4 -> u8; floats of 4 and 8
// bits -> f32).
std::optional<ElementType> held_type(std::int64_t data_type);

std::string element_name(std::int64_t data_type);  // "f32", "string", "f8e4m3fn", "type 99"

// The type of a name in capitals, as TensorProto.DataType has it ("FLOAT", "INT64").
std::optional<DataType> data_type_from_name(std::string_view name);

// Throws Error (unsupported) naming the type where a graph has none.
ElementType required_element_type(std::int64_t data_type);

// The value of a float of 8 bits (Micikevicius et al., FP8 formats for deep learning, 2022; Noune et al.,
// 8-bit numerical formats for deep neural networks, 2022, for the variants without negative zero; OCP
// Microscaling formats 1.0 for e8m0) or 4 bits (e2m1, ibid.).
float small_float(std::int64_t data_type, unsigned bits);

}  // namespace superstep::onnx
