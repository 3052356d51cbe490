// Normal random numbers by a counter: superstep.RandomNormal (op/elementwise/random.h).
//
// In f32, with vectors' logarithm and cosine: within 2e-6 of the definition, and the same bits on any number
// of threads for one instruction set.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// Slots: inputs counter i64*; outputs f32 numbers, dense.
struct RandomNormal {
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
  std::int64_t count = 0;
};

Prepared prepare(const RandomNormal& random);

}  // namespace superstep::kernels
