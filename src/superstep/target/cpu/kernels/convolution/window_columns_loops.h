// The loop of window columns. Internal to the kernels.
#pragma once

#include <cstdint>

namespace superstep::kernels {

// Three lines of `n` values, `channel` elements apart, side by side: to[3 i + c] = from[c * channel + i].
using InterleaveLoop = void(const float* from, std::int64_t channel, std::int64_t n, float* to);

}  // namespace superstep::kernels
