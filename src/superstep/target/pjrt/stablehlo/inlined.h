// Graphs whose nodes are written into a program: the whole of it, or the body of a loop.
#pragma once

#include <span>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/target/pjrt/stablehlo/emitter.h"

namespace superstep::target::stablehlo {

class Settled;

// The nodes of one graph, which has been through program_passes(), on their way into a program. The graph
// must live as long.
class NodesInProgram {
 public:
  NodesInProgram(Emitter& emit, const graph::Graph& graph, std::int64_t first_row = 0);

  // What an input, a state or a constant of the graph is called in the program.
  void set(graph::ValueId id, Value value) { values_[id.index()] = std::move(value); }
  // From now on nodes of what is settled are written there, and their results come as arguments from there.
  void prepare_by(Settled& settled) { settled_ = &settled; }
  void lower();  // all nodes
  void lower(const graph::Node& node);
  // Constants are written where they are first read.
  const Value& value(graph::ValueId id);

 private:
  Value made_elsewhere(graph::ValueId id);
  Value input_of(const graph::Node& node, std::size_t input);

  Emitter& emit_;
  const graph::Graph& graph_;
  std::int64_t first_row_;
  std::vector<Value> values_;
  std::vector<bool> compared_;  // by value
  std::vector<int> uses_;       // by value
  Settled* settled_ = nullptr;
};

// The outputs of a graph without states, by its inputs. Any graph: its passes are run here.
class InlinedGraph {
 public:
  explicit InlinedGraph(graph::Graph graph);
  std::vector<Value> operator()(Emitter& emit, std::span<const Value> inputs) const;

 private:
  graph::Graph graph_;
};

}  // namespace superstep::target::stablehlo
