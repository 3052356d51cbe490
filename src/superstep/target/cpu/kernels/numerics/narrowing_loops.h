// Rounding to a machine's number formats, over vectors. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/numerics/arithmetic.h"

namespace superstep::kernels {

// to[i] = from[i] rounded; element first + i of what node's stream of random words says
// (numerics/definition.h).
struct NarrowingRun {
  const float* from;
  float* to;  // may be `from`
  std::int64_t n;
  numerics::Narrowing how;
  std::int64_t first;
  std::uint32_t node;
  std::uint64_t key;
};

using NarrowingLoop = void(const NarrowingRun& run);
NarrowingLoop* narrowing_loop();

}  // namespace superstep::kernels
