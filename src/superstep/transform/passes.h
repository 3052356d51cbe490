// The passes that clean a graph up. Each changes the graph in place and says whether it did
// (transform/pass.h).
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::transform {

// Evaluates nodes whose inputs are all constant, and Shape and Size of anything. Leaves alone nodes with
// effects, nodes that would make large constants out of small ones, and long computations.
bool fold_constants(graph::Graph& graph);

// The same, and nodes of states that nothing updates: what these hold now is taken for what they will hold.
// For a model whose parameters have their last values.
bool fold_parameters(graph::Graph& graph);

// Removes nodes and constants that no output and no update needs.
bool eliminate_dead(graph::Graph& graph);

// Merges nodes with the same operator, attributes and inputs, and equal constants. Nodes with effects are
// never merged, and the gradients that pass from backward to update stay what they are.
bool eliminate_common(graph::Graph& graph);

// Applies the local rules of transform/simplify/: x + 0, double transposes, Dropout at inference, ...
bool simplify(graph::Graph& graph);

}  // namespace superstep::transform
