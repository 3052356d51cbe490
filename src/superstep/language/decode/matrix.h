// A matrix of weights as a file holds it: rows of numbers, or of packed blocks.
#pragma once

#include <cstdint>
#include <memory>

#include "superstep/file/weights/weight.h"

namespace superstep::language {

enum class Packing : std::uint8_t { f32, f16, bf16, q8_0, q4_0, q4_k, q6_k };
bool is_in_blocks(Packing packing);

struct Matrix {
  std::int64_t rows = 0, columns = 0;
  Packing packing = Packing::f32;
  const std::byte* data = nullptr;  // row by row
  std::shared_ptr<const void> owner;

  std::size_t row_bytes() const;
  std::size_t bytes() const { return static_cast<std::size_t>(rows) * row_bytes(); }
  const std::byte* row(std::int64_t index) const {
    return data + static_cast<std::size_t>(index) * row_bytes();
  }
};

// In place where the file lies in memory as it is; elements of an archive, of 64 bits, or that are not
// aligned are copied. Throws Error (unsupported) naming weights that are no matrix of numbers.
Matrix matrix_of(const data::Weight& weight);
Matrix matrix_of(const Tensor& f32);

// The row as numbers.
void unpack_row(const Matrix& matrix, std::int64_t index, float* values);
// Of the row, `count` from column `first` on: multiples of 256, or up to the row's end.
void unpack_part(const Matrix& matrix, std::int64_t index, std::int64_t first, std::int64_t count,
                 float* values);
// Asks for it from memory, which takes long: a part of a row is too short for a processor to guess the next.
void prefetch_part(const Matrix& matrix, std::int64_t index, std::int64_t first, std::int64_t count);

}  // namespace superstep::language
