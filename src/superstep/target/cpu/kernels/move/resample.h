// Resampling along some axes of a dense tensor: every output line is a weighted sum of input lines, as a
// sparse matrix says. Resizing and its transpose are made of this.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

struct ResampleTap {
  std::int64_t position;  // along the axis of the input
  float weight;
};

// Along `axis` of what the passes before left: output line o is the sum of taps[o].
struct ResamplePass {
  int axis = 0;
  std::vector<std::vector<ResampleTap>> taps;
};

// f32, extents outermost first, no gaps in x or y. Slots: inputs x; outputs y.
struct Resample {
  std::vector<std::int64_t> extents;  // of x
  std::vector<ResamplePass> passes;   // one after the other
};

Prepared prepare(const Resample& resample);

}  // namespace superstep::kernels
