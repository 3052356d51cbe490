// Elements chosen by index, and written back (rows: copy.h). Indices are i32 or i64; negative ones count from
// the end; a run throws Error (invalid_argument) on one that lies outside.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// `lines` lines of `length` elements of data and of `chosen` indices and results, all without gaps; f32.
//
// gather:  y[l][i] = data[l][index[l][i]]. Slots: inputs data, indices; outputs y.
// scatter: y = 0, then y[l][index[l][i]] += updates[l][i]. Slots: inputs indices, updates; outputs y.
struct ElementLookup {
  std::int64_t lines = 1, length = 1, chosen = 1;
  ElementType index_type = ElementType::i64;
};
Prepared prepare_gather_elements(const ElementLookup& lookup);
Prepared prepare_scatter_elements(const ElementLookup& lookup);

}  // namespace superstep::kernels
