// A tile of a convolution on bytes, summed and finished in registers: sums never reach memory. AVX-512 VNNI,
// or AVX2. Internal to the kernels.
#pragma once

#include <atomic>
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

// The same of columns that lie anywhere, of some taps and some summed channels of each.
struct GatheredTile {
  const std::byte* weights;  // of the panel, at the first tap and summed channel
  std::int64_t tap_bytes;    // between taps
  std::int64_t taps, quads;
  const std::uint8_t* const* columns;  // [taps][columns]: where each begins
  std::int64_t columns_stride;         // between taps
  std::int64_t first_byte;             // of the summed channels
  const std::byte* ahead;              // weights that are wanted next, fetched meanwhile: a share by column
  std::int64_t ahead_per_column;
  bool goes_on;  // from block.sums, [columns][channels]; else from less the shift
  bool more;     // is to be added: sums are left as i32 in block.result, like block.sums
  bool bytes;    // the result's type, else f32
};
using GatheredTileFunction = void(const GatheredTile& tile, const IntegerBlock& block);

// How a panel's weights are read that the first-level cache does not hold (gathered_convolution.cpp). What is
// taken in place of what this processor was measured to gain by, where it is not `measured`: for tests, which
// try both.
enum class DeepWeights : std::uint8_t { measured, pieces, whole };
inline std::atomic<DeepWeights> assumed_deep_weights{DeepWeights::measured};

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
GatheredTileFunction* gathered_byte_tile();  // with AVX-512 VNNI alone

// Why there is none with the instruction set in force; empty where there is one.
std::string byte_tile_refusal();

}  // namespace superstep::kernels
