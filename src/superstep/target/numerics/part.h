// Parts of a graph as graphs of their own, which another target compiles.
#pragma once

#include <span>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::target::numerics {

// Some nodes of a graph, in its order. What they read from outside is an input, what is read outside an
// output; constants come along, and states where `with_states` says so, with their updates.
struct Part {
  graph::Graph graph;
  std::vector<graph::ValueId> inputs, outputs;  // of the whole graph, in the order of the part's
  std::vector<graph::ValueId> states;           // that came along
};
Part part_of(const graph::Graph& whole, std::span<const graph::NodeId> nodes, bool with_states);

}  // namespace superstep::target::numerics
