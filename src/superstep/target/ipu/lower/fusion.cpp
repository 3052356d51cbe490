#include "superstep/target/ipu/lower/fusion.h"

#include <algorithm>
#include <set>

#include "superstep/op/core/definition.h"

namespace superstep::target::ipu {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr std::size_t none = static_cast<std::size_t>(-1);
// A vertex has fields for 24 operands and results. Chosen so that they are enough: each also takes a register
// of a worker, which has few.
constexpr std::size_t most_operands = 8, most_nodes = 16;

// Its result is made element by element of operands alone.
bool can_be_fused(const Graph& graph, const Node& node) {
  const op::Definition* definition = op::find(node.op);
  if (!definition || !definition->evaluate || definition->has_effects || definition->shape_inputs != 0)
    return false;
  const op::Traits& traits = definition->traits;
  return traits.elementwise && traits.view == op::View::none && !traits.by_counter &&
         node.outputs.size() == 1 && node.outputs[0].valid() &&
         graph.type(node.outputs[0]).shape.element_count() > 0;
}

// Nodes that become one, in order. Closed when somebody else has read what one of them makes: whoever reads
// it must come after all of them.
struct Group {
  std::vector<std::size_t> nodes;
  std::set<ValueId> operands;
  bool closed = false;
};

class Grouping {
 public:
  Grouping(const Graph& graph, std::span<const std::size_t> stages)
      : graph_(graph), stages_(stages), group_of_(graph.node_count(), none) {
    for (std::size_t i = 0; i < graph.node_count(); ++i) place(i);
  }
  const std::vector<Group>& groups() const { return groups_; }

 private:
  const Node& node(std::size_t i) const { return graph_.node(NodeId(i)); }

  std::size_t maker_group(ValueId id) const {
    if (!id.valid() || graph_.value(id).kind != graph::ValueKind::computed) return none;
    return group_of_[graph_.value(id).producer.index()];
  }

  void place(std::size_t i) {
    const std::size_t joined = can_be_fused(graph_, node(i)) ? group_for(i) : none;
    for (const ValueId id : node(i).inputs)
      if (const std::size_t group = maker_group(id); group != none && group != joined)
        groups_[group].closed = true;
    if (joined == none) return;
    for (const ValueId id : node(i).inputs)
      if (id.valid() && maker_group(id) != joined) groups_[joined].operands.insert(id);
    group_of_[i] = joined;
    groups_[joined].nodes.push_back(i);
  }

  // The latest that makes one of the node's operands, or a new one.
  std::size_t group_for(std::size_t i) {
    std::size_t best = none;
    for (const ValueId id : node(i).inputs) {
      const std::size_t group = maker_group(id);
      if (group != none && may_join(i, groups_[group]) && (best == none || group > best)) best = group;
    }
    if (best != none) return best;
    groups_.emplace_back();
    return groups_.size() - 1;
  }

  bool may_join(std::size_t i, const Group& group) const {
    const Node &now = node(i), &first = node(group.nodes[0]);
    std::set<ValueId> operands = group.operands;
    for (const ValueId id : now.inputs)
      if (id.valid() &&
          std::ranges::none_of(group.nodes, [&](std::size_t n) { return node(n).outputs[0] == id; }))
        operands.insert(id);
    return !group.closed && group.nodes.size() < most_nodes && operands.size() <= most_operands &&
           now.phase == first.phase && now.name == first.name &&
           (stages_.empty() || stages_[i] == stages_[group.nodes[0]]) &&
           graph_.type(now.outputs[0]).shape == graph_.type(first.outputs[0]).shape;
  }

  const Graph& graph_;
  std::span<const std::size_t> stages_;
  std::vector<std::size_t> group_of_;
  std::vector<Group> groups_;
};

double bytes_of(const graph::ValueType& type) {
  return static_cast<double>(type.shape.element_count()) * static_cast<double>(size_in_bytes(type.element));
}

// Values that somebody beyond these nodes reads.
std::set<ValueId> read_elsewhere(const Graph& graph, const std::vector<std::vector<std::size_t>>& readers,
                                 const std::vector<std::size_t>& nodes) {
  std::set<ValueId> found;
  for (const std::size_t i : nodes) {
    const ValueId id = graph.node(NodeId(i)).outputs[0];
    if (std::ranges::any_of(readers[id.index()], [&](std::size_t reader) {
          return reader == none || std::ranges::find(nodes, reader) == nodes.end();
        }))
      found.insert(id);
  }
  return found;
}

// Nodes that read each value; `none` stands for outputs and updates.
std::vector<std::vector<std::size_t>> readers_of(const Graph& graph) {
  std::vector<std::vector<std::size_t>> readers(graph.value_count());
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    for (const ValueId id : graph.node(NodeId(i)).inputs)
      if (id.valid()) readers[id.index()].push_back(i);
  for (const graph::Output& output : graph.outputs()) readers[output.value.index()].push_back(none);
  for (const graph::Update& update : graph.updates())
    if (update.next.valid()) readers[update.next.index()].push_back(none);
  return readers;
}

class Joining {
 public:
  Joining(const Graph& graph, const std::set<ValueId>& wanted) : graph_(graph), wanted_(wanted) {}

  FusedNode run(const std::vector<std::size_t>& nodes) {
    const Node& last = graph_.node(NodeId(nodes.back()));
    fused_.node.op = last.op;
    fused_.node.name = last.name;
    fused_.node.attributes = last.attributes;
    fused_.node.phase = last.phase;
    std::set<ValueId> made;
    for (const std::size_t i : nodes) made.insert(graph_.node(NodeId(i)).outputs[0]);
    for (const std::size_t i : nodes)
      for (const ValueId id : graph_.node(NodeId(i)).inputs)
        if (id.valid() && !made.contains(id) && number_.emplace(id, number_.size()).second)
          fused_.node.inputs.push_back(id);
    for (const std::size_t i : nodes) add(graph_.node(NodeId(i)));
    for (const auto* ids : {&fused_.node.inputs, &fused_.node.outputs})
      for (const ValueId id : *ids) what_.cost.bytes += bytes_of(graph_.type(id));
    fused_.fused = std::make_shared<const Fused>(std::move(what_));
    return std::move(fused_);
  }

 private:
  void add(const Node& node) {
    const ValueId id = node.outputs[0];
    FusedStep step{&op::get(node.op), node.attributes, graph_.type(id).element, {}};
    for (const ValueId input : node.inputs)
      step.inputs.push_back(input.valid() ? static_cast<int>(number_.at(input)) : -1);
    number_.emplace(id, number_.size());
    if (wanted_.contains(id)) {
      what_.results.push_back(static_cast<int>(what_.steps.size()));
      fused_.node.outputs.push_back(id);
    }
    what_.cost.flops += op::cost(graph_, node).flops;
    fused_.operators += (fused_.operators.empty() ? "" : " + ") + node.op;
    what_.steps.push_back(std::move(step));
  }

  const Graph& graph_;
  const std::set<ValueId>& wanted_;
  std::map<ValueId, std::size_t> number_;
  FusedNode fused_;
  Fused what_;
};

}  // namespace

Fusion::Fusion(const Graph& graph, std::span<const std::size_t> stages) : inside_(graph.node_count(), false) {
  const std::vector<std::vector<std::size_t>> readers = readers_of(graph);
  const Grouping grouping(graph, stages);
  for (const Group& group : grouping.groups()) {
    if (group.nodes.size() < 2) continue;
    const std::set<ValueId> wanted = read_elsewhere(graph, readers, group.nodes);
    if (wanted.empty()) continue;
    for (const std::size_t i : group.nodes) inside_[i] = i != group.nodes.back();
    fused_.emplace(group.nodes.back(), Joining(graph, wanted).run(group.nodes));
  }
}

const FusedNode* Fusion::at(std::size_t node) const {
  const auto found = fused_.find(node);
  return found == fused_.end() ? nullptr : &found->second;
}

}  // namespace superstep::target::ipu
