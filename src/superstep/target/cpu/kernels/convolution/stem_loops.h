// The loops of first convolutions. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/depthwise/depthwise_loops.h"

namespace superstep::kernels {

// `columns` results that see the same taps: result(column)[c] = finish(bias[c] + sum over taps of
// weights(tap)[c] * source(tap, column)). A tap is one of the window and one channel of the source. A result
// may be computed twice.
struct StemRun {
  std::int64_t columns, channels;
  DepthwiseTaps taps;
  const float *source, *weights;
  std::int64_t source_stride;  // elements, between columns
  void* result;
  std::int64_t result_stride;
  const float* bias = nullptr;
  float low = 0, high = 0;  // of a clip
};

using StemLoop = void(const StemRun& run);

// For the instruction set in force; f32 or bf16 results.
StemLoop* stem_loop(ElementType result, DepthwiseFinish finish);
std::int64_t stem_lanes();

}  // namespace superstep::kernels
