// Which values of a graph carry a derivative: those that depend on the chosen inputs and on which the
// chosen outputs depend, through floating-point values alone. No calculus here.
#pragma once

#include <span>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::transform {

struct DifferentiationGuide {
  std::vector<bool> active;         // by value
  std::vector<graph::NodeId> path;  // the nodes with an active output that read an active value, in order

  bool is_active(graph::ValueId id) const { return id.valid() && active[id.index()]; }
};

// `stop`: values taken as constant, together with all that depends on the inputs through them alone.
DifferentiationGuide make_guide(const graph::Graph& graph, std::span<const graph::ValueId> inputs,
                                std::span<const graph::ValueId> outputs,
                                std::span<const graph::ValueId> stop = {});

}  // namespace superstep::transform
