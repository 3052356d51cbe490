// A pointwise convolution that a depthwise one alone reads, as inverted bottlenecks have them: what lies
// between is made for 64 channels of a strip of rows at a time and never leaves the second-level cache.
//
// x and y are f32 or bf16; what lies between is f32 and is not rounded, whatever the type of an image of it
// would be. From x in bf16 the expansion multiplies pairs, with sums in f32; the depthwise convolution
// multiplies in f32.
//
// Slots: inputs x, packed weights of the expansion (expansion_layout()), its epilogue's operands..., weights
// of the depthwise convolution (taps_channels, f32), its epilogue's operands...; outputs y.
#pragma once

#include "superstep/target/cpu/kernels/convolution/convolution.h"

namespace superstep::kernels {

struct ExpandedDepthwise {
  Convolution expand;     // pointwise; nothing is stored at its y, whose strides do not matter
  Convolution depthwise;  // its x is the expansion's y
};

// taps_in_out; of x in bf16 taps_in_out_pairs.
WeightLayout expansion_layout(const ExpandedDepthwise& pair);

// Refuses odd numbers of channels of x in bf16, and epilogues that read anything but a value a channel.
Prepared prepare(const ExpandedDepthwise& pair);

}  // namespace superstep::kernels
