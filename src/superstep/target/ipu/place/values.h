// The values of a graph on the machine: each a tensor over a variable, with what is known of where it lies.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "superstep/bsp/graph/graph.h"
#include "superstep/target/ipu/place/spread.h"

namespace superstep::target::ipu {

// What people know a value by: its name, or, where the graph has only numbered it ("v34"), what made it.
std::string label_of(const graph::Value& value, const std::string& maker);

class Values {
 public:
  Values(const graph::Graph& graph, bsp::Graph& device) : graph_(graph), device_(device) {}

  // A new variable with groups of channels innermost (channel_group.h). Throws Error (unsupported) for types
  // that a tile does not have.
  bsp::Tensor grouped_variable(const std::string& name, const graph::ValueType& type);
  // The same in row-major order.
  bsp::Tensor plain_variable(const std::string& name, const graph::ValueType& type);

  // A graph input or a state: the operator that first reads it decides where it lies.
  void add_waiting(graph::ValueId id, const bsp::Tensor& tensor);
  void set(graph::ValueId id, const bsp::Tensor& tensor) { tensors_[id] = tensor; }
  // Makes constants when they are first asked for; they wait for a place as inputs do.
  bsp::Tensor tensor(graph::ValueId id);
  bool is_made(graph::ValueId id) const { return tensors_.contains(id); }

  // A value that is all elements of another one in another order or shape, which waits: who first reads
  // either decides.
  void add_view(graph::ValueId id, const bsp::Tensor& tensor, graph::ValueId of);

  bool is_waiting(graph::ValueId id) const { return waiting_.contains(viewed_value(id)); }
  // Puts a waiting value on the boxes of a spread, seen as `flat`; remembers the spread.
  void place(graph::ValueId id, const bsp::Tensor& flat, Spread spread);
  // Puts it on all tiles evenly.
  void place_evenly(graph::ValueId id);
  void place_all_waiting();
  // The same of what `tensor` is a view of.
  void place_waiting(const bsp::Tensor& tensor);

  // Two values that are made and show elements of one variable.
  bool shares_variable(graph::ValueId a, graph::ValueId b) const;

  // Who makes `next` may write it over the state that it replaces: the state, until then nothing.
  void let_replace(graph::ValueId next, graph::ValueId state) { replaced_[next] = state; }
  std::optional<graph::ValueId> replaced_by(graph::ValueId next) const;

  const Spread* spread(graph::ValueId id) const;
  void set_spread(graph::ValueId id, Spread spread) { spreads_[id] = std::move(spread); }

 private:
  const graph::Graph& graph_;
  bsp::Graph& device_;
  std::map<graph::ValueId, bsp::Tensor> tensors_;
  std::map<graph::ValueId, Spread> spreads_;
  std::map<graph::ValueId, graph::ValueId> replaced_;  // states, by their new values
  graph::ValueId viewed_value(graph::ValueId id) const;

  std::set<graph::ValueId> waiting_;
  std::map<graph::ValueId, graph::ValueId> views_;  // of values that waited: what they are views of
};

// The part of a tensor in some of its ranges.
bsp::Tensor sliced(bsp::Tensor tensor, const std::vector<AxisRange>& ranges);

// Calls f(ranges, tile) for every box of a spread.
void for_each_box(const Spread& spread,
                  const std::function<void(const std::vector<AxisRange>&, std::uint32_t)>& f);

}  // namespace superstep::target::ipu
