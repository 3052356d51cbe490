// Constants of a graph that become states: the parameters of a model that is to be trained.
#pragma once

#include <set>

#include "superstep/graph/graph.h"

namespace superstep::onnx {

// The graph with `constants` as states of the same name, where nodes read them. The running mean and variance
// of a normalisation stay constants: they are statistics, not parameters, and have no gradient worth taking.
graph::Graph parameters_to_states(const graph::Graph& graph, const std::set<graph::ValueId>& constants);

}  // namespace superstep::onnx
