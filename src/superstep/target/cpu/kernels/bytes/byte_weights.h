// Where i8 weights and their sums lie in packed memory. Internal to the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "superstep/target/cpu/kernels/bytes/integer_convolution.h"

namespace superstep::kernels {

// Of few channels a row of taps is summed like one tap of many: side by side in memory, filled up with zeros
// to fours (few_channels.cpp). `taps` are rows then.
struct ByteWeights {
  std::int64_t groups = 1, taps = 1, in = 1, out = 1;  // channels of a group; `in` a multiple of 4
  std::int64_t row_taps = 1, channels = 1;             // in = row_taps * channels, and what fills it up

  // Bytes from the start to the sums, [groups][taps][out] of i32.
  std::size_t sums_offset() const;
  std::int64_t quad_index(std::int64_t group, std::int64_t tap, std::int64_t channel,
                          std::int64_t result) const;
};

ByteWeights byte_weights(const IntegerConvolution& convolution);

// Whether rows of taps are summed as one.
bool sums_rows(const IntegerConvolution& convolution);

// The zero point times all the weights of some channels, packed at `weights`: what every sum has too much
// where padding reads the zero point.
void sum_all_taps(const ByteWeights& w, const void* weights, std::int64_t group, std::int64_t first_channel,
                  std::int64_t channels, std::int32_t zero_point, std::int32_t* shift);

}  // namespace superstep::kernels
