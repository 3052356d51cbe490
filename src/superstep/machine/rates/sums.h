// The sums of a graph, as a law of networks is asked by them.
#pragma once

#include "superstep/graph/graph.h"
#include "superstep/machine/rates/models.h"

namespace superstep::machine {

// Of a forward pass of one of `samples` samples. Operators are counted as a framework launches them: none
// fused with those of other layers.
NetworkSums sums_of(const graph::Graph& graph, double samples);

}  // namespace superstep::machine
