// Choosing elements by index, and writing them back. Indices are integers (i32 or i64); negative ones count
// from the end; one that lies outside stops the evaluation with Error (invalid_argument).
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// The slices of `axis` at `indices`: shape data[:axis] + indices + data[axis+1:].
Var gather(Var data, Var indices, std::int64_t axis = 0);
// y[i][j] = data[indices[i][j]][j] for axis 0 and so on; `indices` has data's rank.
Var gather_elements(Var data, Var indices, std::int64_t axis = 0);
// The slices of data at the index vectors in the last axis of `indices`, after `batch_dims` common axes.
Var gather_nd(Var data, Var indices, std::int64_t batch_dims = 0);

// `data` with `updates` written at (or, with reduction "add", "mul", "max", "min", combined into) the
// places that gather_elements and gather_nd of the same indices would read. With "none" the last of several
// updates of one place wins.
Var scatter_elements(Var data, Var indices, Var updates, std::int64_t axis = 0,
                     const std::string& reduction = "none");
Var scatter_nd(Var data, Var indices, Var updates, const std::string& reduction = "none");

// `update` written into `cache` along `axis` from write_indices[b] (i64 [batch]; zeros when left out) on, for
// each b of axis 0; with `wraps` past the end from the beginning again.
Var tensor_scatter(Var cache, Var update, Var write_indices = {}, std::int64_t axis = -2, bool wraps = false);

std::span<const Definition> gather_operators();
std::span<const Definition> scatter_operators();
std::span<const Definition> tensor_scatter_operators();  // TensorScatter

}  // namespace superstep::op
