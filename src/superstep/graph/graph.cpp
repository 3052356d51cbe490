#include "superstep/graph/graph.h"

#include <fmt/format.h>

#include <utility>

#include "superstep/base/error.h"

namespace superstep::graph {

std::string to_string(const ValueType& type) {
  return name_of(type.element) + superstep::to_string(type.shape);
}

const char* name_of(Phase phase) {
  static constexpr const char* names[] = {"forward", "backward", "update"};
  return names[static_cast<int>(phase)];
}

std::string Graph::unique_name(std::string wanted) const {
  if (wanted.empty()) wanted = fmt::format("v{}", values_.size());
  if (!by_name_.contains(wanted)) return wanted;
  const auto numbered = [&](std::size_t serial) { return fmt::format("{}.{}", wanted, serial); };
  // Doubled and then halved: thousands of constants may want one name, and each would try all numbers before.
  std::size_t taken = 0, free = 1;
  while (by_name_.contains(numbered(free))) taken = std::exchange(free, 2 * free);
  while (free - taken > 1) {
    const std::size_t middle = taken + (free - taken) / 2;
    (by_name_.contains(numbered(middle)) ? taken : free) = middle;
  }
  return numbered(free);
}

ValueId Graph::add_value(Value value) {
  const ValueId id(values_.size());
  // Most names are free: one look, since a compilation copies graphs by the dozen.
  if (value.name.empty() || !by_name_.try_emplace(value.name, id).second) {
    value.name = unique_name(std::move(value.name));
    by_name_.emplace(value.name, id);
  }
  values_.push_back(std::move(value));
  return id;
}

ValueId Graph::add_input(std::string name, ValueType type) {
  inputs_.push_back(add_value({.name = std::move(name), .type = std::move(type), .kind = ValueKind::input}));
  return inputs_.back();
}

ValueId Graph::add_constant(std::string name, Tensor data) {
  ValueType type{data.type(), data.shape()};
  return add_value({.name = std::move(name),
                    .type = std::move(type),
                    .kind = ValueKind::constant,
                    .data = std::move(data)});
}

ValueId Graph::add_state(std::string name, Tensor initial) {
  ValueType type{initial.type(), initial.shape()};
  states_.push_back(add_value({.name = std::move(name),
                               .type = std::move(type),
                               .kind = ValueKind::state,
                               .data = std::move(initial)}));
  return states_.back();
}

NodeId Graph::add_node(std::string op, std::vector<ValueId> inputs, std::span<const ValueType> output_types,
                       Attributes attributes, std::string node_name, Phase phase,
                       std::span<const std::string> output_names) {
  for (ValueId input : inputs)
    if (input.valid() && input.index() >= values_.size())
      throw Error(ErrorCode::internal, "a node reads a value of another graph", op + " " + node_name);
  const NodeId id(nodes_.size());
  Node node{.op = std::move(op),
            .name = std::move(node_name),
            .inputs = std::move(inputs),
            .outputs = {},
            .attributes = std::move(attributes),
            .phase = phase};
  for (std::size_t i = 0; i < output_types.size(); ++i) {
    std::string name = i < output_names.size() ? output_names[i] : std::string();
    node.outputs.push_back(add_value({.name = std::move(name),
                                      .type = output_types[i],
                                      .kind = ValueKind::computed,
                                      .producer = id,
                                      .output_index = static_cast<int>(i)}));
  }
  nodes_.push_back(std::move(node));
  return id;
}

void Graph::drop_output(NodeId node, int output) {
  auto& outputs = nodes_[node.index()].outputs;
  outputs[static_cast<std::size_t>(output)] = ValueId();
  while (!outputs.empty() && !outputs.back().valid()) outputs.pop_back();
}

void Graph::add_output(std::string name, ValueId value) { outputs_.push_back({std::move(name), value}); }

void Graph::set_update(ValueId state, ValueId next) {
  for (Update& update : updates_)
    if (update.state == state) {
      update.next = next;
      return;
    }
  updates_.push_back({state, next});
}

ValueId Graph::find_value(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? ValueId() : found->second;
}

ValueId Graph::find_output(std::string_view name) const {
  for (const Output& output : outputs_)
    if (output.name == name) return output.value;
  return {};
}

ValueId Graph::update_of(ValueId state) const {
  for (const Update& update : updates_)
    if (update.state == state) return update.next;
  return {};
}

void Graph::set_data(ValueId id, Tensor data) {
  Value& target = values_[id.index()];
  if (data.type() != target.type.element || data.shape() != target.type.shape)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("data of type {} given to a value of type {}",
                            to_string(ValueType{data.type(), data.shape()}), to_string(target.type)),
                target.name);
  target.data = std::move(data);
}

void Graph::rename(ValueId id, std::string name) {
  Value& target = values_[id.index()];
  if (target.name == name) return;
  by_name_.erase(target.name);
  target.name = unique_name(std::move(name));
  by_name_.emplace(target.name, id);
}

std::vector<int> Graph::use_counts() const {
  std::vector<int> counts(values_.size(), 0);
  for (const Node& node : nodes_)
    for (ValueId input : node.inputs)
      if (input.valid()) ++counts[input.index()];
  for (const Output& output : outputs_) ++counts[output.value.index()];
  for (const Update& update : updates_) ++counts[update.next.index()];
  return counts;
}

}  // namespace superstep::graph
