#include "superstep/transform/fuse_elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>

#include "superstep/op/core/definition.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr std::size_t none = static_cast<std::size_t>(-1);

std::size_t valid_outputs(const Node& node) {
  return static_cast<std::size_t>(std::ranges::count_if(node.outputs, [](ValueId id) { return id.valid(); }));
}

// Groups under construction: sets of nodes, merged when a node joins.
class Fuser {
 public:
  Fuser(const Graph& graph, const FusionOptions& options) : graph_(graph), options_(options) {}

  FusionGroups run() {
    find_readers();
    for (std::size_t node = 0; node < graph_.node_count(); ++node) {
      members_.push_back({node});
      group_of_.push_back(node);
      if (joins_others(node)) merge_with_producers(node);
    }
    return finish();
  }

 private:
  const Node& node(std::size_t index) const { return graph_.nodes()[index]; }
  std::size_t producer(ValueId id) const {
    const bool computed = id.valid() && graph_.value(id).kind == graph::ValueKind::computed;
    return computed ? graph_.value(id).producer.index() : none;
  }

  void find_readers() {
    readers_.resize(graph_.value_count());
    leaves_graph_.resize(graph_.value_count(), false);
    for (std::size_t i = 0; i < graph_.node_count(); ++i)
      for (ValueId input : node(i).inputs)
        if (input.valid()) readers_[input.index()].push_back(i);
    for (const graph::Output& output : graph_.outputs()) leaves_graph_[output.value.index()] = true;
    for (const graph::Update& update : graph_.updates()) leaves_graph_[update.next.index()] = true;
  }

  bool is_allowed(const Node& candidate) const {
    return valid_outputs(candidate) == 1 && candidate.outputs[0].valid() &&
           std::ranges::find(options_.never_fuse, candidate.op) == options_.never_fuse.end();
  }
  bool joins_others(std::size_t index) const {
    return is_elementwise(node(index).op) && is_allowed(node(index));
  }
  bool can_be_joined(std::size_t index) const {
    return is_allowed(node(index)) && (is_elementwise(node(index).op) || is_fusion_anchor(node(index).op));
  }

  // Joins the groups of the node's producers, one by one, nearest first.
  void merge_with_producers(std::size_t index) {
    std::set<std::size_t, std::greater<>> producers;
    for (ValueId input : node(index).inputs)
      if (const std::size_t from = producer(input); from != none && fits(from, index)) producers.insert(from);
    for (std::size_t from : producers) {
      const std::size_t a = group_of_[from], b = group_of_[index];
      if (a != b && may_merge(a, b)) merge(a, b);
    }
  }

  bool fits(std::size_t from, std::size_t to) const {
    const Node &first = node(from), &second = node(to);
    return can_be_joined(from) && first.phase == second.phase &&
           graph_.type(first.outputs[0]).shape == graph_.type(second.outputs[0]).shape;
  }

  bool may_merge(std::size_t a, std::size_t b) {
    std::vector<std::size_t> together = merged_members(a, b);
    if (together.size() > options_.most_nodes) return false;
    if (!anchors_fit(together)) return false;
    if (has_detour(a, b, together.back())) return false;
    return !options_.single_output || count_outputs(together) <= 1;
  }

  std::vector<std::size_t> merged_members(std::size_t a, std::size_t b) const {
    std::vector<std::size_t> together;
    std::ranges::merge(members_[a], members_[b], std::back_inserter(together));
    return together;
  }

  // One anchor at most, and it comes before everything else of the group.
  bool anchors_fit(const std::vector<std::size_t>& together) const {
    int anchors = 0;
    for (std::size_t member : together) {
      if (!is_fusion_anchor(node(member).op)) continue;
      for (ValueId input : node(member).inputs)
        if (const std::size_t from = producer(input);
            from != none && std::ranges::binary_search(together, from))
          return false;
      ++anchors;
    }
    return anchors <= 1;
  }

  // Does a path lead from groups a or b through another group back into one of them? Groups run whole, so a
  // path enters a group anywhere and leaves it anywhere. Only nodes before `last` can lead back.
  bool has_detour(std::size_t a, std::size_t b, std::size_t last) {
    visited_.assign(members_.size(), false);
    std::vector<std::size_t> open;
    const auto push_readers = [&](std::size_t group) {
      for (std::size_t member : members_[group])
        for (ValueId output : node(member).outputs)
          if (output.valid())
            for (std::size_t reader : readers_[output.index()]) push(reader, last, open);
    };
    const auto inside = [&](std::size_t group) { return group == a || group == b; };
    for (std::size_t group : {a, b}) push_readers(group);
    std::erase_if(open, inside);  // direct edges between the two are what fusion is for
    visited_[a] = visited_[b] = false;
    while (!open.empty()) {
      const std::size_t group = open.back();
      open.pop_back();
      if (inside(group)) return true;
      push_readers(group);
    }
    return false;
  }

  void push(std::size_t reader, std::size_t last, std::vector<std::size_t>& open) {
    if (reader >= group_of_.size()) return;  // not reached yet: it comes after all groups so far
    const std::size_t group = group_of_[reader];
    if (visited_[group] || members_[group].front() > last) return;
    visited_[group] = true;
    open.push_back(group);
  }

  bool leaves(ValueId value, const std::vector<std::size_t>& together) const {
    if (leaves_graph_[value.index()]) return true;
    return std::ranges::any_of(readers_[value.index()], [&](std::size_t reader) {
      return !std::ranges::binary_search(together, reader);
    });
  }

  std::size_t count_outputs(const std::vector<std::size_t>& together) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        together, [&](std::size_t member) { return leaves(node(member).outputs[0], together); }));
  }

  void merge(std::size_t a, std::size_t b) {
    members_[a] = merged_members(a, b);
    members_[b].clear();
    for (std::size_t member : members_[a]) group_of_[member] = a;
  }

  // --- the result

  FusionGroups finish() const {
    FusionGroups result;
    result.group_of.resize(graph_.node_count());
    for (std::size_t group : order_of_groups()) {
      for (std::size_t member : members_[group]) result.group_of[member] = result.groups.size();
      result.groups.push_back(describe_group(members_[group]));
    }
    return result;
  }

  // Kahn's algorithm over the groups; of those that can run, the one with the earliest node first.
  std::vector<std::size_t> order_of_groups() const {
    std::vector<std::size_t> waiting_for(members_.size(), 0), order;
    std::vector<std::set<std::size_t>> next(members_.size());
    for (std::size_t i = 0; i < graph_.node_count(); ++i)
      for (ValueId input : node(i).inputs)
        if (const std::size_t from = producer(input); from != none && group_of_[from] != group_of_[i])
          if (next[group_of_[from]].insert(group_of_[i]).second) ++waiting_for[group_of_[i]];
    using Entry = std::pair<std::size_t, std::size_t>;  // first node, group
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (std::size_t group = 0; group < members_.size(); ++group)
      if (!members_[group].empty() && waiting_for[group] == 0) ready.emplace(members_[group].front(), group);
    while (!ready.empty()) {
      const std::size_t group = ready.top().second;
      ready.pop();
      order.push_back(group);
      for (std::size_t after : next[group])
        if (--waiting_for[after] == 0) ready.emplace(members_[after].front(), after);
    }
    return order;
  }

  FusionGroup describe_group(const std::vector<std::size_t>& members) const {
    FusionGroup group;
    for (std::size_t member : members)
      if (joins_others(member))
        group.elementwise.push_back(NodeId(member));
      else
        group.anchor = NodeId(member);
    for (std::size_t member : members) {
      for (ValueId input : node(member).inputs) add_input(group, members, input);
      for (ValueId output : node(member).outputs)
        if (output.valid() && leaves(output, members)) group.outputs.push_back(output);
    }
    const Node& first = node(members.front());
    group.phase = first.phase;
    if (!first.outputs.empty() && first.outputs[0].valid()) group.shape = graph_.type(first.outputs[0]).shape;
    return group;
  }

  void add_input(FusionGroup& group, const std::vector<std::size_t>& members, ValueId input) const {
    if (!input.valid()) return;
    if (const std::size_t from = producer(input); from != none && std::ranges::binary_search(members, from))
      return;
    if (std::ranges::find(group.inputs, input) == group.inputs.end()) group.inputs.push_back(input);
  }

  const Graph& graph_;
  const FusionOptions& options_;
  std::vector<std::vector<std::size_t>> readers_;  // by value: the nodes that read it
  std::vector<bool> leaves_graph_;                 // by value: an output, or the next value of a state
  std::vector<std::vector<std::size_t>> members_;  // by group: its nodes, ascending; empty: merged away
  std::vector<std::size_t> group_of_;              // by node
  std::vector<bool> visited_;                      // by group, of the last search
};

std::string name_of(const Node& node) {
  return node.name.empty() ? node.op : fmt::format("{} '{}'", node.op, node.name);
}

}  // namespace

bool is_elementwise(std::string_view op) { return op::traits_of(op).elementwise; }

bool is_fusion_anchor(std::string_view op) { return op::traits_of(op).product; }

FusionGroups fuse_elementwise(const Graph& graph, const FusionOptions& options) {
  return Fuser(graph, options).run();
}

std::string to_string(const Graph& graph, const FusionGroups& groups) {
  std::string text;
  for (const FusionGroup& group : groups.groups) {
    if (group.elementwise.size() + group.anchor.valid() < 2) continue;
    std::string line = group.anchor.valid() ? name_of(graph.node(group.anchor)) : std::string();
    for (NodeId member : group.elementwise)
      line += line.empty() ? name_of(graph.node(member)) : " + " + graph.node(member).op;
    text +=
        fmt::format("{} -> {} output{}\n", line, group.outputs.size(), group.outputs.size() == 1 ? "" : "s");
  }
  return text;
}

}  // namespace superstep::transform
