#include "superstep/target/pjrt/stablehlo/preparation.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/op/core/definition.h"

namespace superstep::target::stablehlo {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

std::int64_t elements(const Graph& graph, std::span<const ValueId> ids) {
  std::int64_t count = 0;
  for (ValueId id : ids)
    if (id.valid()) count += graph.type(id).shape.element_count();
  return count;
}

bool is_settled(const Graph& graph, const Node& node, const std::vector<bool>& settled) {
  const auto known = [&](ValueId id) { return !id.valid() || settled[id.index()]; };
  const auto given = [](ValueId id) { return id.valid(); };
  return std::ranges::any_of(node.inputs, given) && std::ranges::all_of(node.inputs, known) &&
         elements(graph, node.outputs) <= elements(graph, node.inputs);
}

Type type_of(const Graph& graph, ValueId id) { return {graph.type(id).element, graph.type(id).shape}; }

}  // namespace

std::vector<bool> settled_values(const Graph& graph) {
  std::vector<bool> settled(graph.value_count(), false);
  for (std::size_t i = 0; i < settled.size(); ++i)
    settled[i] = graph.values()[i].kind == graph::ValueKind::constant;
  for (ValueId id : graph.states()) settled[id.index()] = true;
  for (const graph::Update& update : graph.updates()) settled[update.state.index()] = false;
  for (const Node& node : graph.nodes()) {
    if (!is_settled(graph, node, settled)) continue;
    for (ValueId id : node.outputs)
      if (id.valid()) settled[id.index()] = true;
  }
  return settled;
}

Preparation::Preparation(const Graph& graph, std::span<const ValueId> constants, std::int64_t first_row)
    : graph_(graph),
      settled_(settled_values(graph)),
      is_argument_(graph.value_count(), false),
      nodes_(emit_, graph, first_row) {
  const auto take = [&](ValueId id) {
    own_arguments_.emplace_back(fmt::format("%arg{}", own_arguments_.size()), type_of(graph, id));
    nodes_.set(id, emit_.argument(own_arguments_.back().first, own_arguments_.back().second));
    is_argument_[id.index()] = true;
  };
  for (ValueId id : graph.states()) take(id);
  for (ValueId id : constants) take(id);
  for (const Node& node : graph.nodes())
    if (takes(node)) nodes_.lower(node);
}

bool Preparation::takes(const Node& node) const {
  return std::ranges::any_of(node.outputs, [&](ValueId id) { return id.valid() && settled_[id.index()]; });
}

bool Preparation::holds(ValueId id) const {
  const bool is_written = graph_.value(id).kind == graph::ValueKind::constant && !is_argument_[id.index()];
  return settled_[id.index()] && !is_written;
}

const Node* Preparation::view_of(ValueId id) const {
  const graph::Value& value = graph_.value(id);
  if (value.kind != graph::ValueKind::computed || !settled_[id.index()]) return nullptr;
  const Node& node = graph_.node(value.producer);
  return op::traits_of(node.op).work == op::WorkKind::view ? &node : nullptr;
}

Value Preparation::value(ValueId id, const std::string& form, const Make& make) {
  Value& argument = made_[{id.index(), form}];
  if (!argument.valid()) {
    results_.push_back(make(emit_, nodes_.value(id)));
    argument = {fmt::format("%prepared{}", arguments_.size()), results_.back().type};
    arguments_.push_back(argument);
  }
  return argument;
}

Preparation::Text Preparation::finish() {
  Text text{.arguments = own_arguments_, .results = results_, .refusals = {}, .body = {}};
  if (!emit_.refusals().empty()) text.results.push_back(truths_of(emit_, text.refusals));
  text.body = emit_.take();
  return text;
}

Value truths_of(Emitter& emit, std::vector<std::string>& words) {
  std::vector<Value> truths;
  for (const Emitter::Refusal& refusal : emit.refusals()) {
    words.push_back(refusal.words);
    truths.push_back(emit.reshape(refusal.wrong, {1}));
  }
  return emit.concatenate(truths, 0);
}

}  // namespace superstep::target::stablehlo
