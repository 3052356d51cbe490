// Rows of packs by number, and sums of rows that have the same number: values that graphs hand along their
// edges.
//
// Everything is dense and row-major, but for indices, whose packs may lie apart: sources and targets of edges
// are often halves of one tensor. The indices of a pack name rows of the same pack, and -1 names none. A run
// throws Error (invalid_argument) on any other index outside. Values are f32 or bf16, sums are f32, rounded
// once; rows and sums, but not products, may be f64, too.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

struct PackedRows {
  std::int64_t packs = 1;
  std::int64_t rows = 0;     // of the data of a pack
  std::int64_t entries = 0;  // indices of a pack
  std::int64_t width = 1;    // elements of a row
  std::int64_t count = 0;    // rows of a pack's sums
  ElementType type = ElementType::f32, index_type = ElementType::i64;
  // From the indices of a pack to those of the next, in elements; 0: as many as there are entries. The second
  // is of a product's targets.
  std::int64_t index_stride = 0, target_stride = 0;
};

// y[p][e] = data[p][index[p][e]], zeros for -1. Slots: inputs data [packs, rows, width], index; outputs y.
Prepared prepare_gather_packed(const PackedRows& packed);

// y[p][r] = the sum of data[p][e] over the entries with index[p][e] = r. Slots: inputs data [packs, entries,
// width], index; outputs y [packs, count, width].
Prepared prepare_segment_sum(const PackedRows& packed);

// y[p][r] = the sum of weight[p][e] data[p][source[p][e]] over the entries with target[p][e] = r. Slots:
// inputs data [packs, rows, width], source, target, weight [packs, entries]; outputs y [packs, count, width].
Prepared prepare_sparse_product(const PackedRows& packed);

}  // namespace superstep::kernels
