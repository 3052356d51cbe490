// The loop of resampling. Internal to the kernels.
#pragma once

#include <cstdint>

namespace superstep::kernels {

// y[i] = sum over k of weights[k] * x[k][i], for `length` contiguous elements; `count` at least 1.
struct WeightedLines {
  const float* const* x;
  const float* weights;
  std::int64_t count, length;
  float* y;
};
using WeightedSum = void(const WeightedLines& lines);

}  // namespace superstep::kernels
