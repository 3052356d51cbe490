// A pointwise convolution that a depthwise one alone reads, as inverted bottlenecks have them: what lies
// between is made for 64 channels of a strip of rows at a time and never leaves the second-level cache.
//
// Slots: inputs x, packed weights of the expansion (taps_in_out), its epilogue's operands..., weights of the
// depthwise convolution (taps_channels), its epilogue's operands...; outputs y.
#pragma once

#include "superstep/target/cpu/kernels/convolution/convolution.h"

namespace superstep::kernels {

struct ExpandedDepthwise {
  Convolution expand;     // pointwise; nothing is stored at its y, whose strides do not matter
  Convolution depthwise;  // its x is the expansion's y
};

// Refuses what is not f32 and epilogues that read anything but a value a channel.
Prepared prepare(const ExpandedDepthwise& pair);

}  // namespace superstep::kernels
