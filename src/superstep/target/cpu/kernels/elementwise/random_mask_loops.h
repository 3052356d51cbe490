// The loops of random masks. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/elementwise/word_address.h"

namespace superstep::kernels {

// `n` mask values of one sample with the element numbers first, first + step, ...
struct MaskRun : WordAddress {
  std::uint32_t threshold;  // kept when the number is below it
  std::int64_t first, step, n;
  float kept;  // what a kept element becomes
  void* mask;
};

using MaskLoop = void(const MaskRun& run);

// For the instruction set in force; type u8, f32 or bf16.
MaskLoop* mask_loop(ElementType type);

}  // namespace superstep::kernels
