// The drawing of a model: its nodes, or blocks of them where there are many.
#pragma once

#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/page/network.h"

namespace superstep::show {

// Inputs, nodes and outputs; from 80 nodes on blocks of neighbors, cut where the fewest values pass from one
// to the next, as a residual network's blocks are. Constants and parameters are no boxes.
std::vector<page::NetworkNode> network_of(const graph::Graph& graph);

}  // namespace superstep::show
