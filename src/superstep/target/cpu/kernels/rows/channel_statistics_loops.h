// The loop of channel statistics. Internal to the kernels.
#pragma once

#include <cstdint>

namespace superstep::kernels {

// A block of rows whose sums are added to `sum` and `product`.
struct StatisticsBlock {
  const float *a, *b, *centre;
  float *sum, *product;
  std::int64_t rows, channels, a_stride, b_stride;
};
using StatisticsLoop = void(const StatisticsBlock& block);

// sum += a, product += a * (b - centre), over the rows, for the instruction set in force.
StatisticsLoop* centred_sum_loop();

}  // namespace superstep::kernels
