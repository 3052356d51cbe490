// The derivative of GELU, recognised in the operators that it is written with.
#pragma once

#include <optional>

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// The x of a node that computes Phi(x) + x phi(x) as op/elementwise/activation.cpp writes it, the derivative
// of x Phi(x); nothing of any other node.
std::optional<graph::ValueId> input_of_gelu_slope(const graph::Graph& graph, const graph::Node& node);

}  // namespace superstep::target::cpu
