// New values of states that may be written where the old ones lie: an optimiser's step then moves nothing,
// and a tile holds each state once.
#pragma once

#include <map>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/target/ipu/place/values.h"

namespace superstep::target::ipu {

class InPlaceUpdates {
 public:
  // `order`: the nodes as they are lowered, one after the other.
  InPlaceUpdates(const graph::Graph& graph, std::vector<const graph::Node*> order);

  // Before node `position` of the order is lowered: tells `values` which of its results replace a state that
  // nothing lowered later reads, itself or through a view.
  void allow(std::size_t position, Values& values) const;

 private:
  bool is_read_after(std::size_t position, graph::ValueId state, const Values& values) const;

  const graph::Graph& graph_;
  std::vector<const graph::Node*> order_;
  std::map<graph::ValueId, graph::ValueId> replaced_;  // by a new value that replaces one state alone
};

}  // namespace superstep::target::ipu
