// Rows of weights in blocks as bytes without a sign, with the scales of their groups: what products of
// integers with many tokens take (byte_panels.h).
#pragma once

#include <cstdint>

#include "superstep/language/decode/matrix.h"

namespace superstep::language {

// A weight is scale * (byte - offset) - smallest, scale and smallest being its group's.
struct ByteForm {
  std::int64_t group;  // numbers that share a scale: 32 or 16
  std::int64_t block;  // numbers that are unpacked together
  int offset;          // 128 where bytes had a sign
  int largest;         // byte
  bool has_smallest;   // then the offset is 0
};
// Of a packing in blocks.
ByteForm byte_form(Packing packing);

// Numbers [first, first + count) of a row, whole blocks: `count` bytes, a scale for each group and, where the
// form has them, its smallest value.
void unpack_bytes(const Matrix& matrix, std::int64_t row, std::int64_t first, std::int64_t count,
                  std::uint8_t* bytes, float* scales, float* smallest);

}  // namespace superstep::language
