// Products of matrices of weights with activations, in the machine's vectors.
//
// One token: each row is read once, as the file packs it, which is what a processor's memory can do at best.
// Blocks are multiplied as integers, by activations in blocks of 32 bytes with a scale each. A few tokens:
// rows are unpacked to f32 once and multiplied by all of them. Many: panels.h, byte_panels.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "superstep/language/decode/matrix.h"

namespace superstep::language {

inline constexpr std::int64_t byte_block = 32;
inline constexpr std::int64_t panel_rows = 4;

// Of one token, as numbers and as bytes.
struct Activations {
  std::span<const float> values;
  std::vector<std::int8_t> bytes;
  std::vector<float> scales, sums;  // of each block; sums are scaled, too

  // `as_bytes`: a matrix in blocks will be multiplied. The values must outlive this.
  void set(std::span<const float> x, bool as_bytes);
};

// Blocks of 32 numbers as bytes: by the scale that takes the largest of a block to 127.
void round_to_bytes(const float* x, std::int64_t count, std::int8_t* bytes, float* scales);

// y[r] = row r of the matrix times x, for r in [first, last).
void multiply_rows(const Matrix& matrix, const Activations& x, std::int64_t first, std::int64_t last,
                   float* y);
// The same where no instruction suits its packing alone (byte_dots.h).
void multiply_rows_by_vectors(const Matrix& matrix, const Activations& x, std::int64_t first,
                              std::int64_t last, float* y);

// Rows of f32, `panel_rows` at most, times `tokens` vectors: y[t * y_stride + r], or added to it.
struct Panel {
  const float* rows;
  std::int64_t count, columns;
  std::int64_t stride;  // elements between rows
  bool added = false;
};
// How many columns of a matrix to take at a time, a multiple of 256: those of four rows are to stay in the
// first cache beside the vectors that pass by.
std::int64_t columns_at_a_time(std::int64_t columns);
void multiply_panel(const Panel& panel, const float* x, std::int64_t x_stride, std::int64_t tokens, float* y,
                    std::int64_t y_stride);

// Numbers of two bytes as f32.
void widen_f16(const std::uint16_t* from, std::int64_t count, float* to);
void widen_bf16(const std::uint16_t* from, std::int64_t count, float* to);

float dot(const float* a, const float* b, std::int64_t count);
void add_scaled(float factor, const float* x, float* y, std::int64_t count);  // y += factor x
void multiply_by_silu(const float* x, float* y, std::int64_t count);          // y *= x / (1 + exp(-x))

// The name of the vector instructions in use: "AVX2".
const char* vectors_in_use();

}  // namespace superstep::language
