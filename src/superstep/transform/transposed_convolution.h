// Transposed convolutions whose windows do not overlap, as products.
#pragma once

#include "superstep/base/function_ref.h"
#include "superstep/graph/graph.h"

namespace superstep::transform {

// A ConvTranspose of two dimensions, one group and square windows as large as their stride, without padding,
// whose weights are stored: each position of the result has one tap, so the operator is a pointwise
// convolution to block * block times the channels, and these are moved to their places.
bool is_pointwise_transposed(const graph::Graph& graph, const graph::Node& node);

// The graph with those of them that `wanted` picks as Conv and DepthToSpace. Weights and biases are taken
// from the data of states and constants, as they are now.
graph::Graph expand_transposed(const graph::Graph& graph, FunctionRef<bool(const graph::Node&)> wanted);

}  // namespace superstep::transform
