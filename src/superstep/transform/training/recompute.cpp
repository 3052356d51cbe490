#include "superstep/transform/training/recompute.h"

#include <algorithm>
#include <map>
#include <set>

#include "superstep/op/core/definition.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {
namespace {

bool moves_for_free(const Node& node) { return op::traits_of(node.op).view != op::View::none; }

bool runs_again(const Node& node) {
  const op::Definition& definition = op::get(node.op);
  return node.outputs.size() == 1 && !definition.has_effects && !definition.traits.by_counter;
}

// Which values are kept for the backward pass, and which of them are worth computing again.
class Choice {
 public:
  Choice(const Graph& graph, const RecomputeOptions& options)
      : graph_(graph),
        by_input_(graph.value_count(), false),
        extra_limit_(options.extra_share * op::cost(graph).flops) {
    find_dependent();
    find_kept();
    for (const ValueId id : options.keep) keep(id);
    if (options.stretches > 1) keep_between(options.stretches);
  }

  void run() {
    for (;;) {
      const auto best = cheapest();
      if (!best.valid()) return;
      for (NodeId id : again_for(best)) {
        extra_flops_ += flops(id);
        again_.insert(id);
      }
      kept_.erase(best);
      dropped_.insert(best);
      bytes_freed_ += bytes(best);
    }
  }

  // Must a reader in the backward pass compute this value again?
  bool is_dropped(ValueId id) const { return dropped_.contains(root(id)); }
  // Is it there for the backward pass without being computed again?
  bool is_available(ValueId id) const {
    const ValueId source = root(id);
    return !is_computed(source) || kept_.contains(source) || !by_input_[source.index()] ||
           producer(source).phase != Phase::forward;
  }
  std::size_t dropped() const { return dropped_.size(); }
  double bytes_freed() const { return bytes_freed_; }
  double extra_flops() const { return extra_flops_; }

 private:
  bool is_computed(ValueId id) const { return graph_.value(id).kind == graph::ValueKind::computed; }
  const Node& producer(ValueId id) const { return graph_.node(graph_.value(id).producer); }
  double flops(NodeId id) const { return op::cost(graph_, graph_.node(id)).flops; }
  double bytes(ValueId id) const {
    const graph::ValueType& type = graph_.type(id);
    return static_cast<double>(type.shape.element_count()) * static_cast<double>(size_in_bytes(type.element));
  }

  // The value whose memory `id` is another view of.
  ValueId root(ValueId id) const {
    while (is_computed(id) && moves_for_free(producer(id))) id = producer(id).inputs[0];
    return id;
  }

  void find_dependent() {
    for (ValueId input : graph_.inputs()) by_input_[input.index()] = true;
    for (const Node& node : graph_.nodes())
      for (ValueId input : node.inputs)
        if (input.valid() && by_input_[input.index()])
          for (ValueId output : node.outputs)
            if (output.valid()) by_input_[output.index()] = true;
  }

  void find_kept() {
    std::set<ValueId> leaving;
    for (const graph::Output& output : graph_.outputs()) leaving.insert(root(output.value));
    for (const graph::Update& update : graph_.updates()) leaving.insert(root(update.next));
    for (const Node& node : graph_.nodes()) {
      if (node.phase == Phase::forward) continue;
      for (ValueId input : node.inputs) {
        if (!input.valid()) continue;
        const ValueId source = root(input);
        if (!is_computed(source) || producer(source).phase != Phase::forward) continue;
        kept_.insert(source);
        if (node.phase == Phase::update || leaving.contains(source) || !runs_again(producer(source)))
          fixed_.insert(source);
      }
    }
  }

  void keep(ValueId id) {
    const ValueId source = root(id);
    if (!is_computed(source) || producer(source).phase != Phase::forward) return;
    kept_.insert(source);
    fixed_.insert(source);
  }

  // Keeps what crosses from one stretch of the forward pass to the next: its kept bytes divided equally.
  void keep_between(int stretches) {
    double all = 0, so_far = 0;
    for (ValueId id : kept_) all += bytes(id);
    std::vector<int> stretch_of(graph_.node_count(), 0);
    for (std::size_t i = 0; i < graph_.node_count(); ++i) {
      for (ValueId output : graph_.nodes()[i].outputs)
        if (output.valid() && kept_.contains(output)) so_far += bytes(output);
      stretch_of[i] = std::min(stretches - 1, static_cast<int>(stretches * so_far / all));
    }
    for (std::size_t i = 0; i < graph_.node_count(); ++i) {
      if (graph_.nodes()[i].phase != Phase::forward) continue;
      for (ValueId input : graph_.nodes()[i].inputs) {
        if (!input.valid() || !is_computed(root(input)) || !by_input_[root(input).index()]) continue;
        if (stretch_of[graph_.value(root(input)).producer.index()] != stretch_of[i]) keep(input);
      }
    }
  }

  // The nodes that have to run again, beyond those that do already, when `id` is not kept; collects them.
  // False when one of them cannot.
  bool collect(ValueId id, ValueId without, std::set<NodeId>& nodes) const {
    const ValueId source = root(id);
    if (source != without && is_available(source)) return true;
    if (!is_computed(source)) return true;
    const NodeId node = graph_.value(source).producer;
    if (again_.contains(node) || nodes.contains(node)) return true;
    if (!runs_again(graph_.node(node))) return false;
    nodes.insert(node);
    return std::ranges::all_of(graph_.node(node).inputs, [&](ValueId input) {
      return !input.valid() || collect(input, without, nodes);
    });
  }

  std::set<NodeId> again_for(ValueId id) const {
    std::set<NodeId> nodes;
    return collect(id, id, nodes) ? nodes : std::set<NodeId>();
  }

  // The kept value that costs the fewest operations a byte, within what is left to spend.
  ValueId cheapest() const {
    ValueId best;
    double least = 0;
    for (ValueId id : kept_) {
      if (fixed_.contains(id) || !by_input_[id.index()]) continue;
      const std::set<NodeId> nodes = again_for(id);
      if (nodes.empty()) continue;
      double cost = 0;
      for (NodeId node : nodes) cost += flops(node);
      if (extra_flops_ + cost > extra_limit_) continue;
      const double price = cost / bytes(id);
      if (!best.valid() || price < least) best = id, least = price;
    }
    return best;
  }

  const Graph& graph_;
  std::vector<bool> by_input_;  // by value: depends on an input of the graph
  double extra_limit_;
  std::set<ValueId> kept_, fixed_, dropped_;  // roots
  std::set<NodeId> again_;
  double bytes_freed_ = 0, extra_flops_ = 0;
};

class Recomputation {
 public:
  Recomputation(const Graph& graph, const Choice& choice) : rewrite_(graph), choice_(choice) {}

  Graph run() {
    rewrite_.visit_nodes([&](const Node& node) { visit(node); });
    return rewrite_.finish();
  }

 private:
  void visit(const Node& node) {
    const bool reads_dropped =
        node.phase == Phase::backward && std::ranges::any_of(node.inputs, [&](ValueId input) {
          return input.valid() && choice_.is_dropped(input);
        });
    if (!reads_dropped) return rewrite_.keep(node);
    std::vector<Var> inputs;
    for (ValueId input : node.inputs) inputs.push_back(input.valid() ? again(input) : Var());
    rewrite_.builder().set_name(node.name);
    rewrite_.replace(node, rewrite_.builder().node(node.op, inputs, node.attributes,
                                                   static_cast<int>(node.outputs.size())));
  }

  // The value for a reader in the backward pass.
  Var again(ValueId id) {
    if (!choice_.is_dropped(id) && choice_.is_available(id)) return rewrite_.now(id);
    if (const auto found = made_.find(id); found != made_.end()) return found->second;
    const Graph& old = rewrite_.old();
    const Node& producer = old.node(old.value(id).producer);
    std::vector<Var> inputs;
    for (ValueId input : producer.inputs) inputs.push_back(input.valid() ? again(input) : Var());
    rewrite_.builder().set_name("again(" + producer.name + ")");
    return made_[id] = rewrite_.builder().node(producer.op, inputs, producer.attributes)[0];
  }

  Rewrite rewrite_;
  const Choice& choice_;
  std::map<ValueId, Var> made_;  // by old value
};

}  // namespace

Recomputed recompute(const Graph& graph, const RecomputeOptions& options) {
  Choice choice(graph, options);
  choice.run();
  if (choice.dropped() == 0) return {.graph = graph};
  return {.graph = Recomputation(graph, choice).run(),
          .values = choice.dropped(),
          .bytes_freed = choice.bytes_freed(),
          .extra_flops = choice.extra_flops()};
}

}  // namespace superstep::transform
