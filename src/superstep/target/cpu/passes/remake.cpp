#include "superstep/target/cpu/passes/remake.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "superstep/target/cpu/plan/fusion.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Phase;
using graph::ValueId;
using op::Var;
using transform::Rewrite;

using Values = std::set<ValueId>;

// What the epilogue of a product can hold: such a chain behind a product that nobody else reads takes no pass
// over memory at all.
constexpr std::array epilogue_operators = {"Add", "Mul", "Where", "Greater", "Relu", "LeakyRelu"};
// Operators that cost about as much as reading three quarters of an element from memory.
constexpr std::array expensive_operators = {"Sigmoid", "Exp", "Tanh", "Erf", "Log", "Softplus", "Pow"};
constexpr double expensive_reads = 0.75;

template <std::size_t N>
bool is_among(const std::array<const char*, N>& list, std::string_view op) {
  return std::ranges::find(list, op) != list.end();
}

bool is_product(const Node& node) { return is_fusable_product(node); }

// Which values are made again.
class Choice {
 public:
  explicit Choice(const Graph& graph) : graph_(graph), readers_(graph.value_count()) {
    for (std::size_t i = 0; i < graph.node_count(); ++i)
      for (ValueId input : graph.nodes()[i].inputs)
        if (input.valid() && !std::ranges::count(readers_[input.index()], NodeId(i)))
          readers_[input.index()].push_back(NodeId(i));
    for (const graph::Output& output : graph.outputs()) leaving_.insert(output.value);
    for (const graph::Update& update : graph.updates()) leaving_.insert(update.next);
  }

  // Only where a batch normalisation is trained: elsewhere epilogues of products and kernels of their own
  // (softmax, layer normalisation) have what there is to gain.
  void run() {
    const bool normalises = std::ranges::any_of(
        graph_.nodes(), [](const Node& node) { return node.op == "superstep.ChannelSums"; });
    if (!normalises) return;
    for (const Node& node : graph_.nodes())
      if (is_link(node) && pays(node)) remade_.insert(node.outputs[0]);
  }

  bool is_remade(ValueId id) const { return remade_.contains(id); }
  bool empty() const { return remade_.empty(); }
  // Whether the value is part of its reader's expression: made again with it, or by it alone.
  bool is_inside(ValueId id, const Shape& shape) const {
    const Node* node = producer(id);
    if (!node || !is_link(*node) || graph_.type(id).shape != shape) return false;
    return is_remade(id) || (readers(id).size() == 1 && !leaving_.contains(id));
  }

 private:
  const Node* producer(ValueId id) const {
    const graph::Value& value = graph_.value(id);
    return value.kind == graph::ValueKind::computed ? &graph_.node(value.producer) : nullptr;
  }
  const std::vector<NodeId>& readers(ValueId id) const { return readers_[id.index()]; }
  bool is_f32(ValueId id) const {
    const ElementType element = graph_.type(id).element;
    return element == ElementType::f32 || element == ElementType::boolean;
  }

  // An element-wise node over an image in f32.
  bool is_link(const Node& node) const {
    return node.phase != Phase::update && is_elementwise(graph_, node) &&
           graph_.type(node.outputs[0]).shape.rank() >= 3 &&
           std::ranges::all_of(node.inputs, [&](ValueId id) { return !id.valid() || is_f32(id); }) &&
           is_f32(node.outputs[0]);
  }

  // Whether what makes `id` can run with this reader.
  bool absorbs(NodeId reader, ValueId id) const {
    const Node& node = graph_.node(reader);
    if (node.op == "superstep.ChannelSums") return node.inputs[0] == id && node.inputs[1] != id;
    if (sums_over_positions(graph_, node)) return true;
    return is_link(node) && graph_.type(node.outputs[0]).shape == graph_.type(id).shape;
  }

  // Values as large as the result that a chain is made of, and what it costs to make it.
  struct Chain {
    Values leaves;
    std::set<const Node*> nodes;
    double expensive = 0;
    bool fits_epilogue = true;
  };
  void collect(const Node& node, ValueId without, Chain& chain) const {
    const Shape& shape = graph_.type(node.outputs[0]).shape;
    if (!chain.nodes.insert(&node).second) return;
    chain.expensive += is_among(expensive_operators, node.op);
    chain.fits_epilogue &= is_among(epilogue_operators, node.op);
    for (ValueId input : node.inputs) {
      if (!input.valid() || input == without) continue;
      if (is_inside(input, shape))
        collect(*producer(input), without, chain);
      else if (graph_.type(input).shape == shape)
        chain.leaves.insert(input);
    }
  }
  Chain chain_of(const Node& node, ValueId without = {}) const {
    Chain chain;
    collect(node, without, chain);
    return chain;
  }

  // What the reader reads in the same pass anyway.
  Values read_with(NodeId reader, ValueId id) const {
    const Node* node = &graph_.node(reader);
    if (!is_link(*node)) return {node->inputs.begin() + 1, node->inputs.end()};
    for (;;) {
      const ValueId result = node->outputs[0];
      if (readers(result).size() != 1 || leaving_.contains(result)) break;
      const Node& next = graph_.node(readers(result)[0]);
      if (!is_link(next) || graph_.type(next.outputs[0]).shape != graph_.type(result).shape) break;
      node = &next;
    }
    return chain_of(*node, id).leaves;
  }

  // Whether the value stays in memory without the readers that would make something of it.
  bool is_there(ValueId leaf, const Chain& chain, bool for_backward) const {
    const Node* made = producer(leaf);
    const auto others = [&](NodeId reader) { return !chain.nodes.contains(&graph_.node(reader)); };
    if (made && is_product(*made) && chain.fits_epilogue && std::ranges::none_of(readers(leaf), others))
      return false;
    if (!for_backward || !made || made->phase != Phase::forward) return true;
    return std::ranges::any_of(readers(leaf), [&](NodeId reader) {
      const Node& node = graph_.node(reader);
      return node.phase == Phase::backward && !is_link(node);
    });
  }

  bool pays(const Node& node) const {
    const ValueId id = node.outputs[0];
    const std::vector<NodeId>& here = readers(id);
    if (here.size() < 2 || leaving_.contains(id)) return false;
    if (!std::ranges::all_of(here, [&](NodeId reader) { return absorbs(reader, id); })) return false;
    const Chain chain = chain_of(node);
    const bool for_backward =
        std::ranges::any_of(here, [&](NodeId r) { return graph_.node(r).phase == Phase::backward; });
    if (!std::ranges::all_of(chain.leaves, [&](ValueId leaf) { return is_there(leaf, chain, for_backward); }))
      return false;
    // Passes over memory: written, with the lines fetched for it, and read; or its leaves read by each
    // reader.
    const double written = static_cast<double>(chain.leaves.size()) + 2 + static_cast<double>(here.size());
    double remade = chain.expensive * expensive_reads * static_cast<double>(here.size() - 1);
    for (NodeId reader : here) {
      const Values beside = read_with(reader, id);
      remade += static_cast<double>(
          std::ranges::count_if(chain.leaves, [&](ValueId leaf) { return !beside.contains(leaf); }));
    }
    return remade < written;
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
  Values leaving_, remade_;
};

// The graph with each chain in front of each of its readers.
class Remaking {
 public:
  Remaking(const Graph& graph, const Choice& choice) : rewrite_(graph), choice_(choice) {}

  Graph run() {
    rewrite_.visit_nodes([&](const Node& node) { visit(node); });
    return transform::prune(rewrite_.finish());
  }

 private:
  void visit(const Node& node) {
    if (node.outputs.size() == 1 && choice_.is_remade(node.outputs[0])) return;
    made_.clear();
    bool copies = false;
    std::vector<Var> inputs;
    for (ValueId input : node.inputs) {
      copies |= input.valid() && choice_.is_remade(input);
      inputs.push_back(input.valid() ? for_reader(input) : Var());
    }
    if (!copies) return rewrite_.keep(node);
    rewrite_.replace(node, rewrite_.builder().node(node.op, inputs, node.attributes,
                                                   static_cast<int>(node.outputs.size())));
  }

  Var for_reader(ValueId id) { return choice_.is_remade(id) ? again(id) : rewrite_.now(id); }

  Var again(ValueId id) {
    if (const auto found = made_.find(id); found != made_.end()) return found->second;
    const Graph& old = rewrite_.old();
    const Node& node = old.node(old.value(id).producer);
    std::vector<Var> inputs;
    for (ValueId input : node.inputs) {
      const bool inside = input.valid() && choice_.is_inside(input, old.type(id).shape);
      inputs.push_back(inside ? again(input) : rewrite_.now(input));
    }
    return made_[id] = rewrite_.builder().node(node.op, inputs, node.attributes)[0];
  }

  Rewrite rewrite_;
  const Choice& choice_;
  std::map<ValueId, Var> made_;  // by old value, for the node being visited
};

}  // namespace

graph::Graph remake_between_passes(const graph::Graph& graph) {
  Choice choice(graph);
  choice.run();
  return choice.empty() ? graph : Remaking(graph, choice).run();
}

bool sums_over_positions(const Graph& graph, const Node& node) {
  if (node.op != "ReduceSum" && node.op != "ReduceMean") return false;
  const graph::ValueType& x = graph.type(node.inputs[0]);
  if (x.shape.rank() < 3 || node.inputs.size() < 2 || !node.inputs[1].valid()) return false;
  const graph::Value& axes = graph.value(node.inputs[1]);
  if (axes.kind != graph::ValueKind::constant) return false;
  std::set<std::int64_t> reduced;
  for (std::int64_t i = 0; i < axes.data.element_count(); ++i) {
    const auto axis = static_cast<std::int64_t>(axes.data.at(i));
    reduced.insert(axis < 0 ? axis + x.shape.rank() : axis);
  }
  return static_cast<int>(reduced.size()) == x.shape.rank() - 2 && !reduced.contains(0) &&
         !reduced.contains(1);
}

}  // namespace superstep::target::cpu
