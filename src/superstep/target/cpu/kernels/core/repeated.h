// A kernel run at every place along some more axes: what lets a kernel of few axes walk tensors of many.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// How far the pointers move on, in bytes, by a step along an axis: of every slot, 0 where all places share
// it.
struct RepeatedAxis {
  std::int64_t extent = 1;
  std::vector<std::int64_t> input_steps, output_steps;
};

// The kernel itself where there are no axes; else one whose places run one after another, or as parts. No two
// places may write the same element.
KernelPointer repeated(KernelPointer kernel, std::vector<RepeatedAxis> axes);

}  // namespace superstep::kernels
