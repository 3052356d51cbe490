// The loops that rows by number and their sums spend their time in. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// y[e] = x[row[e]], zeros where row[e] < 0: `columns` words of four bytes each, from the pointers on.
struct RowCopies {
  const void* x;
  void* y;
  std::int64_t stride, columns;  // of x and y: words from a row to the next, and those that are copied
  std::int64_t entries;
  const std::int32_t* row;
};

// y[r][c] = the sum over the entries k of row r, begin[r] to begin[r + 1], of weight[k] x[row[k]][c]: as many
// columns c, from the pointers on. Without weights all are 1; without rows row[k] = k.
struct RowSums {
  const void* x;
  void* y;
  std::int64_t stride, columns;
  std::int64_t count;  // rows of y
  const std::int32_t *begin, *row;
  const float* weight;  // may be null
};

struct RowLoops {
  void (*copy)(const RowCopies& copies);
  void (*sum)(const RowSums& sums);  // null for f64
};

// For the instruction set in force; x and y of this type, f32, bf16 or f64.
RowLoops row_loops(ElementType type);

}  // namespace superstep::kernels
