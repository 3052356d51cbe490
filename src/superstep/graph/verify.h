// The verifier: every rule that makes a graph one that can run. Errors name the node.
#pragma once

#include "superstep/base/error.h"
#include "superstep/base/function_ref.h"
#include "superstep/graph/graph.h"

namespace superstep::graph {

// The output types of a node from its inputs and attributes, or why it cannot be; room op/ has it.
using InferTypes = FunctionRef<Result<std::vector<ValueType>>(const Graph&, const Node&)>;

// Checks ids, order (no node reads what is computed later), kinds, unique names, updates of the right type
// and, through `infer`, that each node's operator exists and that its outputs have the types it gives them.
Status verify(const Graph& graph, InferTypes infer);

}  // namespace superstep::graph
