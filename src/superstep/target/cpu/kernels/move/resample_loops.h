// The loop of resampling. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/move/resample.h"

namespace superstep::kernels {

// y[i] = sum over k of weights[k] * x[k][i], for `length` contiguous elements; `count` at least 1.
struct WeightedLines {
  const float* const* x;
  const float* weights;
  std::int64_t count, length;
  float* y;
};
using WeightedSum = void(const WeightedLines& lines);
WeightedSum* weighted_sums();  // for the instruction set in force

// Three passes and more, whatever their order: every row of the result (what lies along the innermost axis
// that is resampled, and within it) is the weighted sum of a few rows of the input, resampled along that axis
// (resample_rows.cpp). What lies between is one row.
Prepared prepare_by_rows(const Resample& resample);

}  // namespace superstep::kernels
