// Which GridSample nodes have a kernel; the others are made of gathers before they are lowered (decompose.h).
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// Pictures of two axes in f32, linear or nearest, in a graph that is served: a gradient reads what the parts
// have between them.
bool has_grid_sample_kernel(const graph::Graph& graph, const graph::Node& node);

}  // namespace superstep::target::cpu
