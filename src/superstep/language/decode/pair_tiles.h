// Sums of products of bf16 pairs: a few rows of weights by vectors of tokens, by the instruction that adds
// two such products to an f32 (AVX-512 BF16).
//
// Lanes are tokens: two columns of a weight's row are one number of 32 bits for all of them. The instruction
// takes subnormal numbers for zero, and leaves none.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::language {

// Tokens of a panel: three vectors.
inline constexpr std::int64_t pair_panel_width = 48;
// Rows whose sums are in registers together.
inline constexpr int pair_tile_rows = 8;

struct PairTile {
  const bf16* rows;     // [row][column], `stride` apart
  std::int64_t stride;  // a multiple of 2
  const bf16* tokens;   // [pair of columns][token of the panel][column of the pair]
  std::int64_t pairs;
  float* sums;  // [row][token of the panel]
  bool added;   // to what `sums` holds
};

// Of these there is none where has_pair_products() (base/system/pair_rate.h) says so.
// `tokens`: how many of the panel's there are; sums of a vector without any are left alone.
void multiply_pair_tile(const PairTile& tile, std::int64_t rows, std::int64_t tokens);
// Of any count; behind an odd one comes a zero, so that pairs are whole.
// To the nearest, ties to even; subnormal numbers are zero.
void round_to_pairs(const float* x, std::int64_t count, bf16* rounded);
void copy_to_pairs(const bf16* numbers, std::int64_t count, bf16* copied);

}  // namespace superstep::language
