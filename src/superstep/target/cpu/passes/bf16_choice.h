// Which products of a served model are worth bf16 where pairs are multiplied in f32: a count of cycles.
#pragma once

#include <set>
#include <string>

#include "superstep/graph/graph.h"
#include "superstep/transform/precision/precision.h"

namespace superstep::target::cpu {

// The results of the products that transform::autocast would take and that stay in f32. Where pairs are fast,
// none. Elsewhere bf16 saves bytes alone: those of what does not fit the second-level cache, and of weights
// over few positions. What it costs is to widen and to round, and a pass where a product in bf16 meets one in
// f32. Beginning with all in bf16, the one whose return to f32 saves most goes back, until none does.
std::set<std::string, std::less<>> choose_products_in_f32(const graph::Graph& model,
                                                          const transform::AutocastOptions& options);

}  // namespace superstep::target::cpu
