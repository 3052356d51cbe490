#include "superstep/target/cpu/plan/fusion.h"

#include <algorithm>

#include "superstep/op/core/definition.h"
#include "superstep/target/cpu/plan/patterns.h"
#include "superstep/target/cpu/plan/vector_operations.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

bool same_iteration(const Graph& graph, const Node& a, const Node& b) {
  return graph.type(a.outputs[0]).shape == graph.type(b.outputs[0]).shape;
}

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<bool>& leaves, const std::vector<Section>& section_of,
         const std::vector<bool>& excluded)
      : graph_(graph),
        leaves_(leaves),
        section_of_(section_of),
        excluded_(excluded),
        consumers_(graph.value_count()) {
    for (std::size_t i = 0; i < graph.node_count(); ++i)
      for (ValueId input : graph.nodes()[i].inputs)
        if (input.valid()) consumers_[input.index()].push_back(NodeId(i));
    fusion_.group_of.assign(graph.node_count(), -1);
    find_products_before();
  }

  Fusion run() {
    for (std::size_t i = graph_.node_count(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      if (excluded_[i]) continue;
      if (is_elementwise(graph_, node))
        join_or_found(NodeId(i));
      else if (is_fusable_product(node) || is_dequantized_product(graph_, node))
        attach_product(NodeId(i));
    }
    for (FusionGroup& group : fusion_.groups) std::ranges::sort(group.members);
    return std::move(fusion_);
  }

 private:
  // The one group that every reader of the node's output belongs to, or -1.
  int common_group(NodeId id) const {
    const Node& node = graph_.node(id);
    const ValueId output = node.outputs[0];
    if (leaves_[output.index()] || consumers_[output.index()].empty()) return -1;
    int group = -1;
    for (NodeId reader : consumers_[output.index()]) {
      const int other = fusion_.group_of[reader.index()];
      // What a group's product reads comes before the group, not into it.
      if (other >= 0 && fusion_.groups[static_cast<std::size_t>(other)].product == reader) return -1;
      if (other < 0 || (group >= 0 && other != group)) return -1;
      group = other;
    }
    const NodeId root = fusion_.groups[static_cast<std::size_t>(group)].root;
    // Weights that are made of parameters and then rounded: they are packed from what was not rounded yet.
    if (section_of_[root.index()] == Section::prepare && graph_.node(root).op == "Cast") return -1;
    const bool fits = section_of_[root.index()] == section_of_[id.index()] &&
                      same_iteration(graph_, node, graph_.node(root));
    return fits ? group : -1;
  }

  // Of every value, from what it is made of: chains may be as long as the graph.
  void find_products_before() {
    product_before_.resize(graph_.value_count());
    for (std::size_t i = 0; i < graph_.node_count(); ++i)
      for (ValueId output : graph_.nodes()[i].outputs)
        if (output.valid()) product_before_[output.index()] = product_before(NodeId(i), output);
  }

  // The product on bytes that a chain of operators with one reader each begins with, up to this value.
  std::optional<NodeId> product_before(NodeId producer, ValueId id) const {
    if (leaves_[id.index()] || consumers_[id.index()].size() != 1) return std::nullopt;
    const Node& node = graph_.node(producer);
    if (is_dequantized_product(graph_, node)) return producer;
    if (!is_elementwise(graph_, node)) return std::nullopt;
    const auto in_chain = [&](ValueId input) {
      return input.valid() && graph_.type(input).shape == graph_.type(id).shape;
    };
    if (std::ranges::count_if(node.inputs, in_chain) != 1) return std::nullopt;
    return product_before_[std::ranges::find_if(node.inputs, in_chain)->index()];
  }

  // A sum of what two products on bytes lead to: the earlier one is finished on its own, so that the later
  // one can add it as its epilogue. In one group neither would be a chain.
  bool ends_earlier_chain(NodeId id) const {
    const ValueId output = graph_.node(id).outputs[0];
    if (consumers_[output.index()].size() != 1) return false;
    const Node& sum = graph_.node(consumers_[output.index()].front());
    if (sum.op != "Add") return false;
    const auto earlier = product_before_[output.index()];
    const auto later = product_before_[sum.inputs[sum.inputs[0] == output ? 1 : 0].index()];
    return earlier && later && earlier->index() < later->index();
  }

  void join_or_found(NodeId id) {
    int group = ends_earlier_chain(id) ? -1 : common_group(id);
    if (group < 0) {
      group = static_cast<int>(fusion_.groups.size());
      fusion_.groups.push_back({.root = id, .members = {}, .product = std::nullopt});
    }
    fusion_.groups[static_cast<std::size_t>(group)].members.push_back(id);
    fusion_.group_of[id.index()] = group;
  }

  void attach_product(NodeId id) {
    const int group = common_group(id);
    if (group < 0) return;
    auto& product = fusion_.groups[static_cast<std::size_t>(group)].product;
    if (product) return;  // one product a group: the later one, whose result is the fresher
    product = id;
    fusion_.group_of[id.index()] = group;
  }

  const Graph& graph_;
  const std::vector<bool>& leaves_;
  const std::vector<Section>& section_of_;
  const std::vector<bool>& excluded_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<std::optional<NodeId>> product_before_;  // by value
  Fusion fusion_;
};

bool fits_registers(ElementType type) {
  return type == ElementType::f32 || type == ElementType::bf16 || type == ElementType::f16 ||
         type == ElementType::boolean || type == ElementType::u8;
}

}  // namespace

Fusion find_fusion(const Graph& graph, const std::vector<bool>& leaves,
                   const std::vector<Section>& section_of, const std::vector<bool>& excluded) {
  return Finder(graph, leaves, section_of, excluded).run();
}

bool is_elementwise(const Graph& graph, const Node& node) {
  if (!vector_operation(node.op)) return false;
  // Integers are converted as they are loaded.
  if (node.op == "Cast" && is_integer(graph.type(node.inputs[0]).element))
    return graph.type(node.outputs[0]).element == ElementType::f32;
  // Wider types do not: registers are f32. (A number that is known does, as the exponent of a power.)
  for (ValueId input : node.inputs)
    if (input.valid() && !fits_registers(graph.type(input).element) && !uniform_constant(graph, input))
      return false;
  return node.outputs.size() == 1 && fits_registers(graph.type(node.outputs[0]).element);
}

bool is_fusable_product(const Node& node) { return op::traits_of(node.op).product; }

}  // namespace superstep::target::cpu
