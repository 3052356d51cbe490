// The loop that sums of rows by number spend their time in. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// y[r][c] = the sum over the entries k of row r, begin[r] to begin[r + 1], of weight[k] x[row[k]][c]: as many
// columns c, from the pointers on. Without weights all are 1.
struct RowSums {
  const void* x;
  void* y;
  std::int64_t stride, columns;  // of x and y: elements from a row to the next, and those that are summed
  std::int64_t count;            // rows of y
  const std::int32_t *begin, *row;
  const float* weight;  // may be null
};

// For the instruction set in force; x and y of this type, f32 or bf16.
using RowSumLoop = void(const RowSums& sums);
RowSumLoop* row_sum_loop(ElementType type);

}  // namespace superstep::kernels
