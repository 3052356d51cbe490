// Weights packed in blocks of few bits, as GGUF files hold them: a block has a scale of its own.
//
// q8_0: 32 numbers of 8 bits and an f16 scale. q4_0: 32 of 4 bits, counted from -8. q4_k: 256 of 4 bits in
// eight groups, each with a scale and a smallest value of 6 bits. q6_k: 256 of 6 bits in sixteen groups with
// scales of 8 bits. Layouts: the GGUF specification of the ggml project. Numbers of 8 bits, as safetensors
// files hold them, are blocks of one: OCP's E4M3 and E5M2 (8-bit Floating Point Specification, 2023), the
// same without infinities and negative zero (fnuz), and E8M0, a power of two (Microscaling Formats, 2023).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace superstep::data {

enum class BlockFormat : std::uint8_t {
  none,
  q8_0,
  q4_0,
  q4_k,
  q6_k,
  f8_e4m3,
  f8_e5m2,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  f8_e8m0
};

const char* name_of(BlockFormat format);  // "q4_k"; of none: "none"

struct BlockSize {
  std::int64_t values = 1;
  std::size_t bytes = 0;
};
BlockSize block_size(BlockFormat format);  // of none: no bytes

// The values of whole blocks; `values` has as many as they hold.
void unpack_blocks(BlockFormat format, std::span<const std::byte> blocks, std::span<float> values);

// The nearest blocks of values, a multiple of the block's number: q8_0 and q4_0, by the scale that takes the
// largest magnitude to the end of the range. Throws Error (unsupported) for the others.
void pack_blocks(BlockFormat format, std::span<const float> values, std::span<std::byte> blocks);

// Scale and smallest value of group `group` of eight, out of the 12 bytes that a q4_k block keeps them in.
struct GroupScale {
  int scale, smallest;
};
GroupScale group_scale(const std::byte* packed, int group);

}  // namespace superstep::data
