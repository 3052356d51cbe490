// From sums of products of bytes to results: the shift of the zero point, the scale of the channel, a bias, a
// rectifier, and bytes again where that is wanted. Internal to the kernels.
#pragma once

#include <cstdint>

namespace superstep::kernels {

// v = (sum - shift) * scale + bias + added; v < 0 ? slope * v : v. Vectors along channels are given from the
// block's first channel on. What is added is f32, or bytes: (byte - added_zero) * added_scale.
struct IntegerBlock {
  const std::int32_t* sums;    // [columns][channels]
  const std::int32_t* shift;   // [channels]
  const float* scale;          // [channels]
  const float* bias;           // [channels], or null
  const float* added;          // [columns][channels], or null
  std::int64_t added_stride;   // elements between columns, of either
  float slope;                 // from 0, relu, to 1, which leaves v as it is
  void* result;                // f32 or u8; as f32 it may be `sums`
  std::int64_t result_stride;  // elements between columns
  std::int64_t columns, channels;
  float inverse_scale, zero_point;  // of bytes: round(v * inverse_scale) + zero_point, halves to even
  const std::uint8_t* added_bytes = nullptr;  // [columns][channels] in place of `added`, or null
  float added_scale = 0, added_zero = 0;
  bool hard_swish =
      false;  // v * min(max(v / 6 + 1/2, 0), 1) in place of the rectifier; where nothing is added
};

// What a loop was compiled to add.
enum class Addend : std::uint8_t { none, floats, bytes };

using IntegerFinish = void(const IntegerBlock& block);
IntegerFinish* finish_as_f32();
IntegerFinish* finish_as_bytes();

// y = round(v * inverse_scale) + zero_point, limited to 0..255.
struct QuantizeBlock {
  const float* values;
  std::int64_t value_stride;
  std::uint8_t* result;
  std::int64_t result_stride;
  std::int64_t columns, channels;
  float inverse_scale, zero_point;
};
using QuantizeFunction = void(const QuantizeBlock& block);
QuantizeFunction* quantize_block();

}  // namespace superstep::kernels
