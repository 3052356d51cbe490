// Operators of ours as plain ONNX.
#pragma once

#include "superstep/graph/graph.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {

// The outputs of `node`, which has a decomposition, made anew in the rewritten graph.
std::vector<Var> decomposition(Rewrite& rewrite, const Node& node);

// The graph with every "superstep." operator replaced by its decomposition (op/core/definition.h), so that
// only ONNX operators are left, and those that files carry as functions; a mask of dropout by numbers that
// the program draws which runs the file (op::drawn_mask). Throws Error (unsupported) naming the node when
// one has none.
graph::Graph expand_to_onnx(const graph::Graph& graph);

}  // namespace superstep::transform
