// Rows by number in packs: what graphs (molecules, meshes) need to hand values along their edges. Every
// leading axis of the indices is an axis of the data, too: pack by pack, the numbers of one pack name rows of
// the same pack. An index of -1 names no row: padding. Any other that lies outside stops the evaluation with
// Error (invalid_argument).
//
// Each is linear in its data, and each is the other's transpose: GatherRows takes rows to edges, SegmentSum
// takes edges back to rows, and SparseProduct, which is both with a weight between, is its own transpose with
// source and target exchanged.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// data [packs..., rows, width], index [packs..., entries] -> [packs..., entries, width]: row index[e], zeros
// for -1.
Var gather_rows(Var data, Var index);

// data [packs..., entries, width], index [packs..., entries] -> [packs..., count, width]: row r is the sum of
// the entries whose index is r, in the order of the entries.
Var segment_sum(Var data, Var index, std::int64_t count);

// A product with a sparse matrix whose entry e stands at (target[e], source[e]) and is weight[e]:
// data [packs..., rows, width], source, target, weight [packs..., entries] -> [packs..., count, width], row r
// the sum of weight[e] data[source[e]] over the entries whose target is r. Entries of one place add up.
Var sparse_product(Var data, Var source, Var target, Var weight, std::int64_t count);

std::span<const Definition> segment_operators();

}  // namespace superstep::op
