// The loops of random masks. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// `n` mask values of one sample with the element numbers first, first + step, ...
struct MaskRun {
  std::uint64_t seed, sample;
  std::uint32_t purpose;
  std::uint32_t threshold;  // kept when the number is below it
  std::int64_t first, step, n;
  float kept;  // what a kept element becomes
  void* mask;
};

using MaskLoop = void(const MaskRun& run);

// For the instruction set in force; type u8, f32 or bf16.
MaskLoop* mask_loop(ElementType type);

}  // namespace superstep::kernels
