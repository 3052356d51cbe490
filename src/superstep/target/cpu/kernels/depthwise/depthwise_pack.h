// A block of channels of an image, copied into one piece of memory. Internal to the depthwise kernels.
//
// In an image of many channels the columns of a block lie far apart, and rows mostly by a multiple of 4 kB:
// then all that a window reaches falls into a few sets of the first-level cache, and every tap is a miss.
#pragma once

#include <cstddef>
#include <cstdint>

#include "superstep/target/cpu/kernels/core/image.h"

namespace superstep::kernels {

struct DepthwiseBlock {
  std::int64_t channels;  // of a block, the last one possibly fewer
  bool packed = false;
  std::int64_t left = 0, right = 0;  // positions of zeros at the ends of a packed row
  bool widened = false;  // packed from bf16 to f32: each element is converted once, not once a tap
};

// Blocks of two lines of the cache, or of one where more would not stay in the second-level cache. Packed
// where each element is read at least 16 times, so that its copy is won back (5 x 5 taps; measured: 3 x 3
// lose by it), and where an image has several blocks, enough of them for threads to share, that fit that
// cache.
DepthwiseBlock depthwise_block(const Image& source, std::int64_t reads_of_an_element);

// The same, but all channels in one block where the larger of source and result, of so many bytes, comes from
// memory or goes there, and columns are short: lines are then gone over in the order in which they lie.
DepthwiseBlock streamed_block(const Image& source, std::int64_t most_bytes, std::int64_t reads_of_an_element);

// The strides that a packed block of the image has.
Image packed_block(Image source, const DepthwiseBlock& block);
std::size_t packed_block_bytes(const Image& source, const DepthwiseBlock& block);

// `from` stands at the block's first channel; `channels` may be fewer than the block's.
void pack_block(const Image& source, const DepthwiseBlock& block, std::int64_t channels,
                const std::byte* from, std::byte* to);

}  // namespace superstep::kernels
