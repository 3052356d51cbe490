// Sums over all rows of a [rows][channels] tensor, channel by channel: mean and variance, and the two sums
// that the gradient of batch normalisation needs.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// f32; channels are contiguous, row r of a tensor starts at r * its stride (0: channels).
//
// moments: mean and variance (without Bessel's correction) of x. The sums are taken of x less its first row,
// so
//          that a mean far from zero costs no digits. Slots: inputs x; outputs mean, variance.
// sums:    the sum of a and the sum of a * (b - centre). Slots: inputs a, b, centre; outputs both sums.
struct ChannelStatistics {
  std::int64_t rows = 1, channels = 1;
  std::int64_t a_stride = 0, b_stride = 0;  // of x or a; of b
};

Prepared prepare_channel_moments(const ChannelStatistics& statistics);
Prepared prepare_channel_sums(const ChannelStatistics& statistics);

}  // namespace superstep::kernels
