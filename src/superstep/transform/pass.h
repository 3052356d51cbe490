// What a pass is: a function from a graph to a graph with a name, and what is to be known of it. Whatever
// turns a graph into another on its way to a machine is one, and stands in a list that a pipeline runs
// (transform/pipeline.h).
#pragma once

#include <functional>
#include <limits>
#include <string_view>

#include "superstep/graph/graph.h"

namespace superstep::transform {

struct Pass {
  std::string_view name;  // "fold_constants": for leaving out, for dumps and reports
  // Changes the graph in place and says truthfully whether it did: a graph that it says is unchanged is the
  // same object with the same ids. Throws Error when it meets something it cannot leave alone.
  std::function<bool(graph::Graph& graph)> run;
  std::string_view summary = {};   // one line for tables
  std::string_view required = {};  // why it cannot be left out; empty: results stay right without it
  // How far results may move, as a share of the largest element of an output or a state: 0 where they keep
  // their bits, `sums` where terms are added in another order. `other_results`: what comes out is not what
  // went in said differently, but a new graph (a training step of a model).
  double rounding = 0;

  static constexpr double sums = 1e-4;  // a thousand last bits of f32
  static constexpr double other_results = std::numeric_limits<double>::infinity();
};

// What `make` builds of a graph, as the function of a pass: the graph changes where the two differ in more
// than the order of their constants.
std::function<bool(graph::Graph&)> rebuild(std::function<graph::Graph(const graph::Graph&)> make);

// Whether two graphs are the same nodes in the same order, with the same names, attributes and connections,
// between the same inputs, constants, states, outputs and updates. Ids and the names of values between them
// do not matter. The initial elements of states are not looked at: a pass leaves them, and drawing those of a
// large model takes longer than compiling it.
bool same_structure(const graph::Graph& a, const graph::Graph& b);

}  // namespace superstep::transform
