// Where the values of a training step are made and needed when its nodes are shared among stages.
//
// Values of the forward pass travel up, a stage a turn, and gradients down. A stage meets a micro-batch
// twice: in its forward turn and in its backward turn.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::target::ipu {

class ValueRoutes {
 public:
  // `stages`: by node.
  ValueRoutes(const graph::Graph& graph, std::span<const std::size_t> stages, std::size_t count);

  std::size_t stage_of(graph::ValueId id) const { return made_[id.index()].stage; }
  // By the phase of the node that makes it; forward: inputs, states and constants too.
  graph::Phase phase_of(graph::ValueId id) const { return made_[id.index()].phase; }
  bool is_computed(graph::ValueId id) const { return graph_.value(id).kind == graph::ValueKind::computed; }

  // Values that come to a stage from the one below for its forward turn, from the one above for its backward
  // turn.
  const std::set<graph::ValueId>& rising(std::size_t stage) const { return rising_[stage]; }
  const std::set<graph::ValueId>& falling(std::size_t stage) const { return falling_[stage]; }
  // What it hands on to the next one, to the one before.
  const std::set<graph::ValueId>& leaving_up(std::size_t stage) const {
    return stage + 1 < rising_.size() ? rising_[stage + 1] : none_;
  }
  const std::set<graph::ValueId>& leaving_down(std::size_t stage) const {
    return stage > 0 ? falling_[stage - 1] : none_;
  }
  // Values that its forward turn has and its backward turn needs, to compute or to hand down.
  const std::set<graph::ValueId>& kept(std::size_t stage) const { return kept_[stage]; }
  // Inputs and states that a stage reads; in its turns, or in the update alone. Of those that no node reads
  // the first stage has what is an output or a state.
  bool reads(std::size_t stage, graph::ValueId id) const { return reads_[stage].contains(id); }
  bool reads_in_turns(std::size_t stage, graph::ValueId id) const { return in_turns_[stage].contains(id); }
  // Values that forward or backward nodes make and updates read, in order: they are averaged.
  const std::vector<graph::ValueId>& gradients() const { return gradients_; }

 private:
  struct Made {
    std::size_t stage = 0;
    graph::Phase phase = graph::Phase::forward;
  };
  bool is_read(graph::ValueId id) const;
  void read(const graph::Node& node, std::size_t stage, graph::ValueId id);

  const graph::Graph& graph_;
  std::vector<Made> made_;
  std::vector<std::set<graph::ValueId>> rising_, falling_, kept_, reads_, in_turns_;
  std::vector<graph::ValueId> gradients_;
  std::set<graph::ValueId> averaged_;
  const std::set<graph::ValueId> none_;
};

}  // namespace superstep::target::ipu
