// Sums over everything but the channels of x [N, C, ...]: what training with batch normalisation is made of.
// They exist as operators so that a target can make each in one pass over memory.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// superstep.ChannelMoments: mean and variance (without Bessel's correction) of each channel, [C] each.
struct ChannelMoments {
  Var mean, variance;
};
ChannelMoments channel_moments(Var x);
// Of all parts of a batch together (op/rows/parts_mean.h).
ChannelMoments channel_moments_over_parts(Var x);

// superstep.ChannelSums: for each channel the sum of a, and the sum of a * (b - centre[channel]); [C] each.
struct ChannelSums {
  Var sum, centred_product;
};
ChannelSums channel_sums(Var a, Var b, Var centre);

std::span<const Definition> channel_statistics_operators();

}  // namespace superstep::op
