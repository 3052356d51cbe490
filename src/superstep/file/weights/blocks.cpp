#include "superstep/file/weights/blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "superstep/base/element_type.h"
#include "superstep/base/error.h"

namespace superstep::data {
namespace {

constexpr std::int64_t small_block = 32, large_block = 256;
constexpr std::size_t scale_bytes = 2;   // an f16
constexpr std::size_t group_bytes = 12;  // the scales and smallest values of a q4_k block

float read_f16(const std::byte* at) {
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return f16::widen(bits);
}

void write_f16(float value, std::byte* at) {
  const std::uint16_t bits = f16::round_from(value);
  std::memcpy(at, &bits, sizeof bits);
}

int low(std::byte b) { return std::to_integer<int>(b) & 15; }
int high(std::byte b) { return std::to_integer<int>(b) >> 4; }

void unpack_q8_0(const std::byte* block, float* y) {
  const float scale = read_f16(block);
  for (std::int64_t i = 0; i < small_block; ++i)
    y[i] = scale * static_cast<float>(static_cast<std::int8_t>(block[scale_bytes + i]));
}

void unpack_q4_0(const std::byte* block, float* y) {
  const float scale = read_f16(block);
  for (std::int64_t i = 0; i < small_block / 2; ++i) {
    const std::byte two = block[scale_bytes + i];
    y[i] = scale * static_cast<float>(low(two) - 8);
    y[i + small_block / 2] = scale * static_cast<float>(high(two) - 8);
  }
}

void unpack_q4_k(const std::byte* block, float* y) {
  const float scale = read_f16(block), smallest = read_f16(block + scale_bytes);
  const std::byte* groups = block + 2 * scale_bytes;
  const std::byte* values = groups + group_bytes;
  // 32 bytes hold two groups: the low halves, then the high ones.
  for (int pair = 0; pair < 4; ++pair, values += small_block, y += 2 * small_block) {
    const GroupScale a = group_scale(groups, 2 * pair), b = group_scale(groups, 2 * pair + 1);
    const float scale_a = scale * static_cast<float>(a.scale), scale_b = scale * static_cast<float>(b.scale);
    const float low_a = smallest * static_cast<float>(a.smallest),
                low_b = smallest * static_cast<float>(b.smallest);
    for (std::int64_t i = 0; i < small_block; ++i) {
      y[i] = scale_a * static_cast<float>(low(values[i])) - low_a;
      y[i + small_block] = scale_b * static_cast<float>(high(values[i])) - low_b;
    }
  }
}

// Two halves of 128 values: 64 bytes hold their lower four bits, 32 bytes the upper two.
void unpack_q6_k(const std::byte* block, float* y) {
  const std::byte *lower = block, *upper = block + 128, *scales = block + 192;
  const float scale = read_f16(block + 208);
  for (int half = 0; half < 2; ++half, lower += 64, upper += 32, scales += 8, y += 128)
    for (int i = 0; i < 32; ++i)
      for (int part = 0; part < 4; ++part) {
        const std::byte four = lower[i + (part % 2) * 32];
        const int bits =
            (part < 2 ? low(four) : high(four)) | ((std::to_integer<int>(upper[i]) >> (2 * part) & 3) << 4);
        const auto group = static_cast<std::int8_t>(scales[i / 16 + 2 * part]);
        y[i + 32 * part] = scale * static_cast<float>(group) * static_cast<float>(bits - 32);
      }
}

// A sign, an exponent and `mantissa_bits`; `fnuz`: 0x80 is the only NaN, and the bias is one more.
float eight_bits(unsigned bits, int mantissa_bits, bool has_infinity, bool fnuz) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(),
                  infinity = std::numeric_limits<float>::infinity();
  const unsigned magnitude = bits & 0x7f, all_ones = 0x7fu >> mantissa_bits;
  const unsigned exponent = magnitude >> mantissa_bits, mantissa = magnitude & ((1u << mantissa_bits) - 1);
  if (fnuz && bits == 0x80) return nan;
  if (!fnuz && !has_infinity && magnitude == 0x7f) return nan;
  if (!fnuz && has_infinity && exponent == all_ones)
    return mantissa != 0 ? nan : bits & 0x80 ? -infinity : infinity;
  const int bias = static_cast<int>(all_ones / 2) + (fnuz ? 1 : 0);
  const unsigned whole = exponent == 0 ? mantissa : mantissa | 1u << mantissa_bits;
  const float value =
      std::ldexp(static_cast<float>(whole), std::max(static_cast<int>(exponent), 1) - bias - mantissa_bits);
  return bits & 0x80 ? -value : value;
}

template <int mantissa_bits, bool has_infinity, bool fnuz>
void unpack_eight_bits(const std::byte* block, float* y) {
  *y = eight_bits(std::to_integer<unsigned>(*block), mantissa_bits, has_infinity, fnuz);
}

void unpack_power(const std::byte* block, float* y) {
  constexpr int bias = 127, nan = 255;
  const int bits = std::to_integer<int>(*block);
  *y = bits == nan ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, bits - bias);
}

using Unpack = void (*)(const std::byte*, float*);
Unpack unpack_of(BlockFormat format) {
  switch (format) {
    case BlockFormat::q8_0: return unpack_q8_0;
    case BlockFormat::q4_0: return unpack_q4_0;
    case BlockFormat::q4_k: return unpack_q4_k;
    case BlockFormat::q6_k: return unpack_q6_k;
    case BlockFormat::f8_e4m3: return unpack_eight_bits<3, false, false>;
    case BlockFormat::f8_e5m2: return unpack_eight_bits<2, true, false>;
    case BlockFormat::f8_e4m3fnuz: return unpack_eight_bits<3, false, true>;
    case BlockFormat::f8_e5m2fnuz: return unpack_eight_bits<2, true, true>;
    case BlockFormat::f8_e8m0: return unpack_power;
    case BlockFormat::none: break;
  }
  throw Error(ErrorCode::internal, "these weights are in no blocks");
}

void pack_q8_0(const float* x, std::byte* block) {
  float largest = 0;
  for (std::int64_t i = 0; i < small_block; ++i) largest = std::max(largest, std::abs(x[i]));
  write_f16(largest / 127, block);
  const float inverse = largest > 0 ? 127 / largest : 0;
  for (std::int64_t i = 0; i < small_block; ++i)
    block[scale_bytes + i] = static_cast<std::byte>(static_cast<std::int8_t>(std::lround(x[i] * inverse)));
}

// The value of the largest magnitude becomes -8, the end that 7 on the other side does not have.
void pack_q4_0(const float* x, std::byte* block) {
  float end = 0;
  for (std::int64_t i = 0; i < small_block; ++i)
    if (std::abs(x[i]) > std::abs(end)) end = x[i];
  write_f16(end / -8, block);
  const float inverse = end != 0 ? -8 / end : 0;
  const auto packed = [&](std::int64_t i) {
    return static_cast<int>(std::clamp(std::lround(x[i] * inverse) + 8L, 0L, 15L));
  };
  for (std::int64_t i = 0; i < small_block / 2; ++i)
    block[scale_bytes + i] = static_cast<std::byte>(packed(i) | packed(i + small_block / 2) << 4);
}

}  // namespace

const char* name_of(BlockFormat format) {
  switch (format) {
    case BlockFormat::q8_0: return "q8_0";
    case BlockFormat::q4_0: return "q4_0";
    case BlockFormat::q4_k: return "q4_k";
    case BlockFormat::q6_k: return "q6_k";
    case BlockFormat::f8_e4m3: return "f8_e4m3";
    case BlockFormat::f8_e5m2: return "f8_e5m2";
    case BlockFormat::f8_e4m3fnuz: return "f8_e4m3fnuz";
    case BlockFormat::f8_e5m2fnuz: return "f8_e5m2fnuz";
    case BlockFormat::f8_e8m0: return "f8_e8m0";
    case BlockFormat::none: break;
  }
  return "none";
}

BlockSize block_size(BlockFormat format) {
  switch (format) {
    case BlockFormat::q8_0: return {small_block, scale_bytes + 32};
    case BlockFormat::q4_0: return {small_block, scale_bytes + 16};
    case BlockFormat::q4_k: return {large_block, 2 * scale_bytes + group_bytes + 128};
    case BlockFormat::q6_k: return {large_block, 128 + 64 + 16 + scale_bytes};
    case BlockFormat::f8_e4m3:
    case BlockFormat::f8_e5m2:
    case BlockFormat::f8_e4m3fnuz:
    case BlockFormat::f8_e5m2fnuz:
    case BlockFormat::f8_e8m0: return {1, 1};
    case BlockFormat::none: break;
  }
  return {};
}

GroupScale group_scale(const std::byte* packed, int group) {
  const auto byte = [&](int i) { return std::to_integer<int>(packed[i]); };
  if (group < 4) return {byte(group) & 63, byte(group + 4) & 63};
  return {(byte(group + 4) & 15) | (byte(group - 4) >> 6) << 4, (byte(group + 4) >> 4) | (byte(group) >> 6)
                                                                                             << 4};
}

void unpack_blocks(BlockFormat format, std::span<const std::byte> blocks, std::span<float> values) {
  const Unpack unpack = unpack_of(format);
  const BlockSize size = block_size(format);
  const std::size_t count = values.size() / static_cast<std::size_t>(size.values);
  if (count * size.bytes != blocks.size() || count * static_cast<std::size_t>(size.values) != values.size())
    throw Error(ErrorCode::internal, "blocks and values do not fit each other");
  for (std::size_t i = 0; i < count; ++i)
    unpack(blocks.data() + i * size.bytes, values.data() + i * static_cast<std::size_t>(size.values));
}

void pack_blocks(BlockFormat format, std::span<const float> values, std::span<std::byte> blocks) {
  if (format != BlockFormat::q8_0 && format != BlockFormat::q4_0)
    throw Error(ErrorCode::unsupported, std::string("weights are not packed as ") + name_of(format), {},
                "q8_0 and q4_0 are written");
  const BlockSize size = block_size(format);
  const std::size_t count = values.size() / static_cast<std::size_t>(size.values);
  if (count * size.bytes != blocks.size() || count * static_cast<std::size_t>(size.values) != values.size())
    throw Error(ErrorCode::internal, "blocks and values do not fit each other");
  const auto pack = format == BlockFormat::q8_0 ? pack_q8_0 : pack_q4_0;
  for (std::size_t i = 0; i < count; ++i)
    pack(values.data() + i * static_cast<std::size_t>(size.values), blocks.data() + i * size.bytes);
}

}  // namespace superstep::data
