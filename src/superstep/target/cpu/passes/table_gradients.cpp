#include "superstep/target/cpu/passes/table_gradients.h"

#include <algorithm>
#include <vector>

#include "superstep/op/elementwise/cast.h"
#include "superstep/target/cpu/plan/patterns.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::cpu {
namespace {

using graph::Phase;
using op::Var;
using transform::Rewrite;

class TableGradients {
 public:
  explicit TableGradients(const Graph& graph)
      : graph_(graph), uses_(graph.use_counts()), makes_gradient_(graph.value_count(), false) {
    find_gradients();
  }

  Graph run() {
    return transform::prune(
        transform::rewrite(graph_, [&](Rewrite& rewrite, const Node& node) { visit(rewrite, node); }));
  }

 private:
  // Values of the backward pass that are the gradient of a parameter, or a term of its sum.
  void find_gradients() {
    for (std::size_t i = graph_.node_count(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      if (is_optimizer(node)) makes_gradient_[node.inputs[1].index()] = true;
      if (node.op != "Add" || node.phase != Phase::backward || !makes_gradient_[node.outputs[0].index()])
        continue;
      for (ValueId term : node.inputs) makes_gradient_[term.index()] = true;
    }
  }

  void visit(Rewrite& rewrite, const Node& node) const {
    if (const Node* product = product_before(node)) return turn_round(rewrite, node, *product);
    for (const std::size_t side : {0u, 1u})
      if (const Node* rows = rows_added(node, side))
        return add_to(rewrite, node, *rows, node.inputs[1 - side]);
    rewrite.keep(node);
  }

  // What makes the value that `node` alone reads.
  const Node* only_for(ValueId id, std::string_view op) const {
    const graph::Value& value = graph_.value(id);
    if (value.kind != graph::ValueKind::computed || uses_[id.index()] != 1) return nullptr;
    const Node& node = graph_.node(value.producer);
    return node.op == op && node.phase == Phase::backward ? &node : nullptr;
  }

  const Node* product_before(const Node& node) const {
    if (node.op != "Transpose" || graph_.type(node.outputs[0]).shape.rank() != 2 ||
        !makes_gradient_[node.outputs[0].index()])
      return nullptr;
    if (node.attributes.integers("perm", {1, 0}) != std::vector<std::int64_t>{1, 0}) return nullptr;
    const Node* rounded = only_for(node.inputs[0], "Cast");
    const Node* product = only_for(rounded ? rounded->inputs[0] : node.inputs[0], "Gemm");
    const bool has_sum = product && product->inputs.size() > 2 && product->inputs[2].valid();
    return has_sum ? nullptr : product;
  }

  const Node* rows_added(const Node& node, std::size_t side) const {
    if (node.op != "Add" || !makes_gradient_[node.outputs[0].index()]) return nullptr;
    const ValueId other = node.inputs[1 - side];
    if (graph_.value(other).kind != graph::ValueKind::computed || uses_[other.index()] != 1 ||
        graph_.type(other) != graph_.type(node.outputs[0]))
      return nullptr;
    const Node* rows = only_for(node.inputs[side], "ScatterND");
    return rows && adds_rows_to_zeros(graph_, *rows) ? rows : nullptr;
  }

  static void turn_round(Rewrite& rewrite, const Node& node, const Node& product) {
    graph::Attributes attributes = product.attributes;
    attributes.set("transA", std::int64_t{product.attributes.integer("transB", 0) == 0});
    attributes.set("transB", std::int64_t{product.attributes.integer("transA", 0) == 0});
    const Var a = rewrite.now(product.inputs[0]), b = rewrite.now(product.inputs[1]);
    Var result = rewrite.builder().node1("Gemm", {b, a}, attributes);
    const ElementType element = rewrite.old().type(node.outputs[0]).element;
    if (result.element() != element) result = op::cast(result, element);
    rewrite.replace(node, std::span(&result, 1));
  }

  static void add_to(Rewrite& rewrite, const Node& node, const Node& rows, ValueId sum) {
    const Var result = rewrite.builder().node1(
        "ScatterND", {rewrite.now(sum), rewrite.now(rows.inputs[1]), rewrite.now(rows.inputs[2])},
        rows.attributes);
    rewrite.replace(node, std::span(&result, 1));
  }

  const Graph& graph_;
  std::vector<int> uses_;
  std::vector<bool> makes_gradient_;
};

}  // namespace

Graph add_into_tables(const Graph& graph) { return TableGradients(graph).run(); }

}  // namespace superstep::target::cpu
