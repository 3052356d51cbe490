// Running sums, sorting, and other operators along one axis.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// y[i] = x[0] + ... + x[i]; `exclusive`: without x[i]; `reversed`: from the other end. Any numeric type.
Var cumsum(Var x, std::int64_t axis, bool exclusive = false, bool reversed = false);

// y[i] = x[0] * ... * x[i], in the same way.
Var cumprod(Var x, std::int64_t axis, bool exclusive = false, bool reversed = false);

// The k largest (or smallest) elements along an axis, in order, and their positions (i64). Of equal elements
// the one with the lower position comes first.
struct TopK {
  Var values, indices;
};
TopK top_k(Var x, std::int64_t k, std::int64_t axis = -1, bool largest = true);

// The upper (or lower) triangle of the last two axes, with the k-th diagonal; the rest zero.
Var trilu(Var x, std::int64_t k = 0, bool upper = true);

// on where the new axis' position is the index, off elsewhere; indices below zero count from the end.
// `values` holds off and on.
Var one_hot(Var indices, std::int64_t depth, Var values, std::int64_t axis = -1);

// The first lengths[b] elements of sequence b in reverse order, the rest as they are.
Var reverse_sequence(Var x, Var lengths, std::int64_t batch_axis = 1, std::int64_t time_axis = 0);

std::span<const Definition> cumulative_operators();          // CumSum Trilu ReverseSequence
std::span<const Definition> cumulative_product_operators();  // CumProd
std::span<const Definition> selection_operators();           // TopK OneHot NonZero Compress Unique

}  // namespace superstep::op
