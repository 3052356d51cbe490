// The graph: typed values with static shapes, and nodes that compute them.
//
// A graph has inputs (given at each run), constants, state (kept between runs: parameters, optimiser
// moments, random counters), nodes in an order in which they can run, named outputs, and updates: what each
// state holds after the run. A model, a training step and an optimiser are all graphs of this one kind.
//
// Operators have ONNX names and ONNX meaning; ours beyond ONNX are named "superstep.Name". The graph knows
// an operator only by its name: shapes, derivatives and evaluation live in room op/.
//
// Values and nodes are only ever appended; a transform that removes or changes something builds a new
// graph (transform/rewrite.h), so that ids of one graph never change their meaning, and references to values,
// types and nodes stay valid while it grows.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/id.h"
#include "superstep/base/tensor.h"
#include "superstep/graph/attributes.h"

namespace superstep::graph {

using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;

struct ValueType {
  ElementType element = ElementType::f32;
  Shape shape;
  friend bool operator==(const ValueType&, const ValueType&) = default;
};
std::string to_string(const ValueType& type);  // "f32[512,1,11,11]"

enum class ValueKind : std::uint8_t { input, constant, state, computed };

struct Value {
  std::string name;  // unique within the graph
  ValueType type;
  ValueKind kind = ValueKind::computed;
  NodeId producer;       // of a computed value
  int output_index = 0;  // which output of its producer
  Tensor data;           // a constant's elements, a state's initial elements
};

// What part of a training step a node belongs to. Values that pass from `backward` to `update` are the
// gradients: targets that split a batch into micro-batches accumulate exactly these.
enum class Phase : std::uint8_t { forward, backward, update };
const char* name_of(Phase phase);

struct Node {
  std::string op;                // "Conv", "superstep.Adam"
  std::string name;              // where it came from, for messages and profiles; need not be unique
  std::vector<ValueId> inputs;   // an invalid id stands for an optional input left out
  std::vector<ValueId> outputs;  // an invalid id stands for an optional output left out
  Attributes attributes;
  Phase phase = Phase::forward;
};

struct Output {
  std::string name;
  ValueId value;
};

struct Update {
  ValueId state;
  ValueId next;
};

class Graph {
 public:
  explicit Graph(std::string name = "graph") : name_(std::move(name)) {}

  // Names are made unique by a number when they are taken; an empty name becomes "v12".
  ValueId add_input(std::string name, ValueType type);
  ValueId add_constant(std::string name, Tensor data);
  ValueId add_state(std::string name, Tensor initial);
  // An output nobody asked for is left out with drop_output.
  NodeId add_node(std::string op, std::vector<ValueId> inputs, std::span<const ValueType> output_types,
                  Attributes attributes = {}, std::string node_name = {}, Phase phase = Phase::forward,
                  std::span<const std::string> output_names = {});

  void drop_output(NodeId node, int output);  // an optional output that is not wanted; last one first

  void add_output(std::string name, ValueId value);
  void set_update(ValueId state, ValueId next);  // replaces an earlier one of the same state

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  const std::string& doc() const { return doc_; }
  void set_doc(std::string doc) { doc_ = std::move(doc); }

  const Value& value(ValueId id) const { return values_[id.index()]; }
  const ValueType& type(ValueId id) const { return value(id).type; }
  const Node& node(NodeId id) const { return nodes_[id.index()]; }
  std::size_t value_count() const { return values_.size(); }
  std::size_t node_count() const { return nodes_.size(); }
  const std::deque<Value>& values() const { return values_; }
  const std::deque<Node>& nodes() const { return nodes_; }  // in an order in which they can run
  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const ValueId> states() const { return states_; }
  std::span<const Output> outputs() const { return outputs_; }
  std::span<const Update> updates() const { return updates_; }
  ValueId find_value(std::string_view name) const;   // invalid when there is none
  ValueId find_output(std::string_view name) const;  // the value of a named output; invalid when none
  ValueId update_of(ValueId state) const;            // invalid when the state is never written

  // Replaces a state's initial value or a constant's elements; type and shape must agree.
  void set_data(ValueId id, Tensor data);
  void rename(ValueId id, std::string name);

  // How many nodes, outputs and updates read each value.
  std::vector<int> use_counts() const;

 private:
  ValueId add_value(Value value);
  std::string unique_name(std::string wanted) const;

  std::string name_, doc_;
  std::deque<Value> values_;
  std::deque<Node> nodes_;
  std::vector<ValueId> inputs_, states_;
  std::vector<Output> outputs_;
  std::vector<Update> updates_;
  std::map<std::string, ValueId, std::less<>> by_name_;
};

}  // namespace superstep::graph
