// The loop of normal random numbers. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/elementwise/word_address.h"

namespace superstep::kernels {

// `n` numbers from number `first` on; `first` is a multiple of 4.
struct NormalRun : WordAddress {
  std::int64_t first = 0, n = 0;
  float* numbers = nullptr;
};

using NormalLoop = void(const NormalRun& run);

NormalLoop* normal_loop();  // for the instruction set in force

}  // namespace superstep::kernels
