// Which products of a model are worth bf16: a count of cycles.
#pragma once

#include <set>
#include <string>

#include "superstep/graph/graph.h"
#include "superstep/transform/precision/precision.h"

namespace superstep::target::cpu {

// The results of the products that transform::autocast would take and that stay in f32.
// Where pairs are fast: products of matrices of so few channels, or of so few rows of what is made in the
// run, that what they save does not make up for packing and rounding, in training those of their gradients as
// well. Elsewhere, of a model that is served, bf16 saves bytes alone: those of what does not fit the
// second-level cache, and of weights over few positions. What it costs is to widen and to round, and a pass
// where a product in bf16 meets one in f32. Beginning with all in bf16, the one whose return to f32 saves
// most goes back, until none does.
std::set<std::string, std::less<>> choose_products_in_f32(const graph::Graph& model,
                                                          const transform::AutocastOptions& options);

}  // namespace superstep::target::cpu
