#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "superstep/op/core/definition.h"
#include "superstep/transform/border.h"
#include "superstep/transform/passes.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {
namespace {

// Two nodes with the same key compute the same, when their attributes are the same too.
using Key = std::tuple<std::string, std::vector<ValueId>>;

std::string_view bytes_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_count()};
}

// Constants by type and bits. Weights of a large model are among them: they are hashed, not copied.
class ConstantTable {
 public:
  // The first constant that was given with this type and these bits.
  ValueId first_like(const Graph& graph, ValueId id) {
    const graph::Value& value = graph.value(id);
    const std::string_view bytes = bytes_of(value.data);
    auto& candidates = by_hash_[std::hash<std::string_view>()(bytes)];
    for (ValueId candidate : candidates)
      if (graph.type(candidate) == value.type && bytes_of(graph.value(candidate).data) == bytes)
        return candidate;
    candidates.push_back(id);
    return id;
  }

 private:
  std::unordered_map<std::size_t, std::vector<ValueId>> by_hash_;
};

class CommonEliminator {
 public:
  explicit CommonEliminator(const Graph& old) : rewrite_(old), gradient_(gradient_values(old)) {}

  bool run(Graph& graph) {
    merge_constants();
    rewrite_.visit_nodes([&](const Node& node) { visit(node); });
    if (!changed_) return false;
    graph = rewrite_.finish();
    return true;
  }

 private:
  // Constants of the same type and bits become the first of them.
  void merge_constants() {
    const Graph& old = rewrite_.old();
    ConstantTable table;
    for (std::size_t i = 0; i < old.value_count(); ++i) {
      if (old.values()[i].kind != graph::ValueKind::constant) continue;
      const ValueId first = table.first_like(old, ValueId(i));
      if (first == ValueId(i)) continue;
      rewrite_.replace(ValueId(i), rewrite_.now(first));
      changed_ = true;
    }
  }

  void visit(const Node& node) {
    std::vector<ValueId> inputs;
    for (const Var& var : rewrite_.now(node.inputs)) inputs.push_back(var.id());
    auto& candidates = seen_[Key(node.op, inputs)];
    for (NodeId candidate : candidates)
      if (merges_into(node, rewrite_.graph().node(candidate))) return replace(node, candidate);
    rewrite_.keep(node);
    if (!op::get(node.op).has_effects) candidates.push_back(NodeId(rewrite_.graph().node_count() - 1));
  }

  bool merges_into(const Node& node, const Node& earlier) const {
    if (node.attributes != earlier.attributes || node.outputs.size() > earlier.outputs.size()) return false;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].valid()) continue;
      if (!earlier.outputs[i].valid()) return false;
      if (!may_stand_for(earlier.phase, node.phase, gradient_[node.outputs[i].index()])) return false;
    }
    return true;
  }

  void replace(const Node& node, NodeId earlier) {
    std::vector<Var> outputs;
    for (ValueId id : rewrite_.graph().node(earlier).outputs) outputs.push_back(rewrite_.builder().var(id));
    rewrite_.replace(node, outputs);
    changed_ = true;
  }

  Rewrite rewrite_;
  std::vector<bool> gradient_;  // by old value
  std::map<Key, std::vector<NodeId>> seen_;
  bool changed_ = false;
};

}  // namespace

bool eliminate_common(Graph& graph) { return CommonEliminator(graph).run(graph); }

}  // namespace superstep::transform
