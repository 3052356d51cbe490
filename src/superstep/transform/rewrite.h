// The one tool to rebuild a graph: it walks the nodes in order and lets a callback keep, replace or drop
// each. Inputs, states, names, phases, outputs and updates are carried over.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/graph/graph.h"
#include "superstep/op/core/builder.h"

namespace superstep::transform {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Phase;
using graph::ValueId;
using op::Builder;
using op::Var;

// A graph under reconstruction. New nodes take the name and the phase of the old node being visited unless
// the callback sets others on the builder.
class Rewrite {
 public:
  // Adds the inputs and the states of `old`, in their order, so that their names never change. Constants
  // follow when they are first asked for.
  explicit Rewrite(const Graph& old);
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;

  const Graph& old() const { return old_; }
  Graph& graph() { return graph_; }
  Builder& builder() { return builder_; }

  // What stands for an old value in the new graph; an invalid id gives an invalid Var. Throws Error
  // (internal) when the value was dropped.
  Var now(ValueId old);
  std::vector<Var> now(std::span<const ValueId> old);
  bool has(ValueId old) const;  // false: dropped, or a constant nobody asked for yet

  // Copies the node, reading what now stands for its inputs.
  void keep(const Node& node);
  // From here on outputs[i] stands for the node's output i. Values made for this node take over the names
  // of the old outputs. Invalid: that output is dropped.
  void replace(const Node& node, std::span<const Var> outputs);
  void replace(ValueId old, Var now);

  // Calls `each` on every node of the old graph in order; a node that it neither keeps nor replaces is
  // dropped. Throws Error (internal) when something still reads what was dropped.
  void visit_nodes(FunctionRef<void(const Node&)> each);
  // The same in another order in which they can run.
  void visit_nodes(std::span<const NodeId> order, FunctionRef<void(const Node&)> each);
  void carry_outputs();
  void carry_updates();
  // Carries both and gives the new graph away: the last call.
  Graph finish();

 private:
  void visit(const Node& node, FunctionRef<void(const Node&)> each);
  void free_name(const std::string& name, ValueId unless);

  const Graph& old_;
  Graph graph_;
  Builder builder_;
  std::vector<Var> now_;  // by old value
  std::set<ValueId> carried_constants_;
  std::size_t fresh_from_ = 0;      // values from here on were made for the node being visited
  const Node* visiting_ = nullptr;  // for messages
};

// The whole graph rewritten, outputs and updates included.
Graph rewrite(const Graph& graph, FunctionRef<void(Rewrite& rewrite, const Node& node)> each);

// The graph without the nodes that no output and no update needs, and without constants that nobody reads.
// Inputs and states stay: they are the graph's interface.
Graph prune(const Graph& graph);

// Which nodes an output or an update needs, by index.
std::vector<bool> needed_nodes(const Graph& graph);

// "node 'conv1' (Conv)": a node for messages.
std::string describe(const Node& node);

}  // namespace superstep::transform
