// Sums of products of bytes: a few rows of weights (byte_rows.h) by vectors of tokens, in the instructions of
// processors that add such products at once.
//
// Lanes are tokens: four columns of a weight's row are one number of 32 bits for all of them. What a block of
// 32 columns adds up to is scaled into f32.
#pragma once

#include <cstdint>
#include <span>

#include "superstep/language/decode/byte_rows.h"

namespace superstep::language {

struct ByteTile {
  const std::uint8_t* weights;  // [row][column], `stride` apart
  std::int64_t stride;
  const float *scales, *smallest;  // [row][group], `scale_stride` apart
  std::int64_t scale_stride;
  ByteForm form;
  const std::int8_t* tokens;       // [four columns][token][column of the four]
  const float* token_scales;       // [block of 32][token]
  const std::int32_t* token_sums;  // [half a block][token]: of the bytes
  std::int64_t blocks, width;      // of 32 columns; tokens of a panel
  float* sums;                     // [row][token], `width` apart: added to
};

// One of the ways that this processor has.
struct ByteTileWay {
  const char* name;
  std::int64_t width;  // tokens of a panel
  int largest_weight;  // byte of a weight
  // `tokens`: how many of the panel's there are; sums of a vector without any are left alone.
  void (*multiply)(const ByteTile& tile, std::int64_t rows, std::int64_t tokens);
};

// The quickest first; none where f32 is as quick.
std::span<const ByteTileWay> byte_tile_ways();

}  // namespace superstep::language
