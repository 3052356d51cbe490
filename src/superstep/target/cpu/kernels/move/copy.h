// Copies between layouts: permutations, slices, pieces of concatenations, broadcasts, conversions of type;
// and rows gathered from a table.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// y(i) = x(i) for every index i of `extents`; any strides (a negative one walks backwards from the pointer, 0
// in x broadcasts; y's must name each element once). Equal types copy bits; f32, bf16 and f16 convert into
// each other. Axes are merged and reordered as fits; a transposition of the contiguous axis goes through 16 x
// 16 (or 8 x 8) register tiles. Slots: inputs x; outputs y; the two must not overlap.
struct StridedCopy {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> x_strides, y_strides;  // in elements
  ElementType x_type = ElementType::f32, y_type = ElementType::f32;
};

Prepared prepare(const StridedCopy& copy);

// Row r of y is row index[r] of the table; a negative index counts from the end, as in ONNX Gather. A run
// throws Error (invalid_argument) on an index outside the table.
// gather:  inputs table, index; outputs y.
// scatter: y's gradient added into the table's (f32): inputs dy, index; outputs dtable, accumulated into in
//          the order of r.
struct GatherRows {
  std::int64_t table_rows = 1, rows = 1, length = 1;
  std::int64_t table_stride = 0, y_stride = 0;  // 0: length
  ElementType type = ElementType::f32;          // of the elements; scatter: f32
  ElementType index_type = ElementType::i64;    // i32 or i64
};

Prepared prepare_gather(const GatherRows& gather);
Prepared prepare_scatter_add(const GatherRows& gather);

}  // namespace superstep::kernels
