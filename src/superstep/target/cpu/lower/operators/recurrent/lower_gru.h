// Which GRU nodes have kernels; the others are unrolled before they are lowered (decompose.h).
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// GRU in f32 in a graph that is served, with the default activations and the reset gate behind the product,
// without lengths and clipping, with a multiple of 16 units. In training the gradient reads what is between
// the steps, which the unrolled form has.
bool has_gru_kernel(const graph::Graph& graph, const graph::Node& node);

}  // namespace superstep::target::cpu
