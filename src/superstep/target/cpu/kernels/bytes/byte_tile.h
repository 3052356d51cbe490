// A tile of a convolution on bytes, summed and finished in registers: sums never reach memory. AVX-512 VNNI.
// Internal to the kernels.
#pragma once

#include <cstdint>
#include <string>

#include "superstep/target/cpu/kernels/bytes/integer_finish.h"

namespace superstep::kernels {

// What the sums are made of: at most panel_width channels, as many as the block that they are finished into.
struct ByteTile {
  const std::byte* weights;  // of the panel: quads of a tap, [quads][channels][4]
  const std::uint8_t* x;     // at the tile's first column
  std::uint64_t taps;
  const std::uint64_t *weight_offsets, *source_offsets;  // bytes, by tap
  std::int64_t quads;                                    // summed channels in fours
  std::int64_t column_stride;                            // bytes between columns of x
};

// `block.sums` is not looked at. No result may lie where x or the weights do; `added` may be the result.
using ByteTileFunction = void(const ByteTile& tile, const IntegerBlock& block);

// Null on processors without VNNI.
ByteTileFunction* byte_tile_as_f32();
ByteTileFunction* byte_tile_as_bytes();

// Why there is none with the instruction set in force; empty where there is one.
std::string byte_tile_refusal();

}  // namespace superstep::kernels
