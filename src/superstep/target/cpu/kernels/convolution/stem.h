// First convolutions of pictures: few channels in, which lie as planes of their own, and an image out
// (image.h). Each number of the picture is read where it lies and multiplied into vectors of outputs, several
// columns of results at a time in registers: nothing is laid out first.
#pragma once

#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/convolution/planar.h"

namespace superstep::kernels {

// Slots: inputs x in f32, weights (taps_in_out, f32), what the epilogue reads; outputs y in f32 or bf16. Sums
// are f32, in the order of taps' rows, taps of a row, channels of x.
struct StemConvolution {
  Convolution convolution;  // of its x the extents alone count
  Planes x;
};

// Outputs at most: one panel of weights.
inline constexpr std::int64_t most_stem_outputs = 64;

// Refuses more than most_planar_channels channels of x and most_stem_outputs outputs, outputs that leave
// vectors more than a quarter empty, and what follows but [bias] [an activation of the depthwise loops].
Prepared prepare(const StemConvolution& stem);

}  // namespace superstep::kernels
