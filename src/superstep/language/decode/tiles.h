// Products of weights in bf16 with many tokens by the processor's matrix registers (Intel AMX).
//
// Weights are read where the file has them: 16 rows of 64 bytes are a register. An activation is two bf16
// that are added, its own and what that leaves of it, so that 16 of its 24 bits count: two products in the
// place of one, and sums in f32.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/language/decode/matrix.h"

namespace superstep::language {

// Activations in the order of the registers.
class TileActivations {
 public:
  // `columns`: a multiple of 32. Tokens are zero until they are set.
  TileActivations(std::int64_t tokens, std::int64_t columns);
  void set(std::int64_t token, const float* x);  // may be called by several threads, for tokens of their own

  std::int64_t tokens() const { return tokens_; }
  std::int64_t columns() const { return columns_; }
  // Of the tokens from 16 * block on: registers of 32 columns, the numbers' own and what they leave in turn.
  const std::uint16_t* block(std::int64_t number) const {
    return values_.data() + number * columns_ * 2 * side;
  }
  std::int64_t blocks() const { return (tokens_ + side - 1) / side; }

  static constexpr std::int64_t side = 16;

 private:
  std::int64_t tokens_, columns_;
  std::vector<std::uint16_t> values_;
};

// Whether there are matrix registers, and the weights suit them: bf16, rows a multiple of 16, columns of 32.
bool suits_tiles(const Matrix& matrix);

// y[t * y_stride + r] = row r of the matrix times token t, for r in [first, last), multiples of 16.
void multiply_tiles(const Matrix& matrix, const TileActivations& x, std::int64_t first, std::int64_t last,
                    float* y, std::int64_t y_stride);

}  // namespace superstep::language
