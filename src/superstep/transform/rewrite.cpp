#include "superstep/transform/rewrite.h"

#include <fmt/format.h>

#include "superstep/base/error.h"

namespace superstep::transform {

using graph::ValueKind;
using graph::ValueType;

Rewrite::Rewrite(const Graph& old)
    : old_(old), graph_(old.name()), builder_(graph_), now_(old.value_count()) {
  graph_.set_doc(old.doc());
  for (ValueId id : old.inputs())
    now_[id.index()] = builder_.var(graph_.add_input(old.value(id).name, old.type(id)));
  for (ValueId id : old.states()) now_[id.index()] = builder_.state(old.value(id).name, old.value(id).data);
}

bool Rewrite::has(ValueId old) const { return now_[old.index()].valid(); }

Var Rewrite::now(ValueId old) {
  if (!old.valid()) return {};
  Var& var = now_[old.index()];
  if (var.valid()) return var;
  const graph::Value& value = old_.value(old);
  if (value.kind != ValueKind::constant)
    throw Error(ErrorCode::internal, fmt::format("%{} was dropped but is still read", value.name),
                visiting_ ? describe(*visiting_) : "");
  var = builder_.constant(value.data, value.name);
  carried_constants_.insert(var.id());
  return var;
}

std::vector<Var> Rewrite::now(std::span<const ValueId> old) {
  std::vector<Var> vars;
  for (ValueId id : old) vars.push_back(now(id));
  return vars;
}

// What was made on the way is named by its number, as a value of the old graph may be that comes later: the
// name is that one's.
void Rewrite::free_name(const std::string& name, ValueId unless) {
  const ValueId holder = graph_.find_value(name);
  if (!holder.valid() || holder == unless) return;
  const ValueKind kind = graph_.value(holder).kind;
  if (kind == ValueKind::computed || kind == ValueKind::constant) graph_.rename(holder, {});
}

void Rewrite::keep(const Node& node) {
  std::vector<ValueId> inputs;
  for (const Var& var : now(node.inputs)) inputs.push_back(var.id());
  std::vector<ValueType> types;
  std::vector<std::string> names;
  for (ValueId id : node.outputs) {
    types.push_back(id.valid() ? old_.type(id) : ValueType{ElementType::f32, Shape{0}});
    names.push_back(id.valid() ? old_.value(id).name : std::string());
    if (id.valid()) free_name(names.back(), {});
  }
  const NodeId copy =
      graph_.add_node(node.op, std::move(inputs), types, node.attributes, node.name, node.phase, names);
  for (std::size_t i = node.outputs.size(); i-- > 0;)
    if (node.outputs[i].valid())
      now_[node.outputs[i].index()] = builder_.var(graph_.node(copy).outputs[i]);
    else
      graph_.drop_output(copy, static_cast<int>(i));
}

void Rewrite::replace(const Node& node, std::span<const Var> outputs) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i].valid()) replace(node.outputs[i], i < outputs.size() ? outputs[i] : Var());
}

void Rewrite::replace(ValueId old, Var now) {
  now_[old.index()] = now;
  const bool made_for_it = now.valid() && now.id().index() >= fresh_from_;
  if (!made_for_it || carried_constants_.contains(now.id())) return;
  free_name(old_.value(old).name, now.id());
  graph_.rename(now.id(), old_.value(old).name);
}

void Rewrite::visit(const Node& node, FunctionRef<void(const Node&)> each) {
  visiting_ = &node;
  builder_.set_name(node.name);
  builder_.set_phase(node.phase);
  fresh_from_ = graph_.value_count();
  each(node);
  visiting_ = nullptr;
}

void Rewrite::visit_nodes(FunctionRef<void(const Node&)> each) {
  for (const Node& node : old_.nodes()) visit(node, each);
}

void Rewrite::visit_nodes(std::span<const NodeId> order, FunctionRef<void(const Node&)> each) {
  for (const NodeId id : order) visit(old_.node(id), each);
}

void Rewrite::carry_outputs() {
  for (const graph::Output& output : old_.outputs()) builder_.output(output.name, now(output.value));
}

void Rewrite::carry_updates() {
  for (const graph::Update& update : old_.updates()) builder_.update(now(update.state), now(update.next));
}

Graph Rewrite::finish() {
  carry_outputs();
  carry_updates();
  return std::move(graph_);
}

Graph rewrite(const Graph& graph, FunctionRef<void(Rewrite&, const Node&)> each) {
  Rewrite rewrite(graph);
  rewrite.visit_nodes([&](const Node& node) { each(rewrite, node); });
  return rewrite.finish();
}

std::vector<bool> needed_nodes(const Graph& graph) {
  std::vector<bool> needed(graph.node_count(), false);
  const auto mark = [&](ValueId id) {
    if (id.valid() && graph.value(id).kind == ValueKind::computed)
      needed[graph.value(id).producer.index()] = true;
  };
  for (const graph::Output& output : graph.outputs()) mark(output.value);
  for (const graph::Update& update : graph.updates()) mark(update.next);
  for (std::size_t i = graph.node_count(); i-- > 0;)
    if (needed[i])
      for (ValueId input : graph.nodes()[i].inputs) mark(input);
  return needed;
}

Graph prune(const Graph& graph) {
  const std::vector<bool> needed = needed_nodes(graph);
  std::size_t index = 0;
  return rewrite(graph, [&](Rewrite& rewrite, const Node& node) {
    if (needed[index++]) rewrite.keep(node);
  });
}

std::string describe(const Node& node) {
  return node.name.empty() ? fmt::format("node of {}", node.op)
                           : fmt::format("node '{}' ({})", node.name, node.op);
}

}  // namespace superstep::transform
