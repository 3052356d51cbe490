// Gradients of tables that are looked up by rows and multiplied with as well, as a language model's embedding
// is that also makes its scores: large matrices to which a few rows are added.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// The training step with
// - products that make the transpose of a parameter's gradient turned round, so that they write the gradient
//   in the parameter's own order: transpose(a b) is transpose(b) transpose(a);
// - rows added to the gradient that is there, where they were added to zeros and that to the gradient.
// Same results, but for the order in which a row's terms are summed.
graph::Graph add_into_tables(const graph::Graph& graph);

}  // namespace superstep::target::cpu
