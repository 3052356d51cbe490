// What a pass is: a function of a graph with a name.
#pragma once

#include <span>
#include <string_view>

#include "superstep/graph/graph.h"

namespace superstep::transform {

struct Pass {
  std::string_view name;  // "fold_constants": for switching off, for dumps and reports
  // Changes the graph in place and says truthfully whether it did: a graph that it says is unchanged is the
  // same object with the same ids. Throws Error when it meets something it cannot leave alone.
  bool (*run)(graph::Graph& graph);
};

}  // namespace superstep::transform
