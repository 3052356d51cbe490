// A tile of a convolution on bytes, summed and finished in registers: sums never reach memory. AVX-512 VNNI,
// or AVX2. Internal to the kernels.
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

// How bytes are multiplied with the instruction set in force.
enum class ByteProducts {
  none,
  pairs,  // AVX2: i16, two at a time
  quads,  // AVX-512 VNNI: four bytes at a time
};
ByteProducts byte_products();

// Null where there are no byte products.
ByteTileFunction* byte_tile_as_f32();
ByteTileFunction* byte_tile_as_bytes();
ByteTileFunction* avx2_byte_tile_as_f32();
ByteTileFunction* avx2_byte_tile_as_bytes();

// Why there is none with the instruction set in force; empty where there is one.
std::string byte_tile_refusal();

}  // namespace superstep::kernels
