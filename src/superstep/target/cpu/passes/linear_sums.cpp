#include "superstep/target/cpu/passes/linear_sums.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "superstep/op/core/definition.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/target/cpu/plan/patterns.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using graph::ValueKind;
using op::Var;
using transform::Rewrite;

// Binary exponents of a factor, at most. Chosen: sums that are so much larger or smaller stay in the range of
// f32 where those of a model that trains do.
constexpr int largest_exponent = 32;
// A value is large beside another one of this share of its elements. Chosen: scaling that is then hardly
// counts.
constexpr std::int64_t large = 4;

bool is_real(ElementType type) { return type == ElementType::f32 || type == ElementType::bf16; }

bool is_cast(const Graph& graph, const Node& node) {
  return node.op == "Cast" && is_real(graph.type(node.inputs[0]).element) &&
         is_real(graph.type(node.outputs[0]).element);
}

// A factor, or a conversion that scaling can pass: both types have the same exponents.
std::optional<Scaled> link_of(const Graph& graph, const Node& node) {
  if (is_cast(graph, node)) return Scaled{node.inputs[0], 1};
  return scaled_by_number(graph, node);
}

bool is_sum(const Node& node) { return node.op == "ReduceSum" || node.op == "ReduceMean"; }

bool is_matrix_product(const Graph& graph, const Node& node) {
  return (node.op == "Gemm" || node.op == "MatMul") && graph.type(node.inputs[0]).shape.rank() == 2 &&
         graph.type(node.inputs[1]).shape.rank() == 2;
}

bool is_weight_gradient(const Node& node) {
  return op::traits_of(node.op).product_kind == op::ProductKind::weight_gradient;
}

std::int64_t elements(const Graph& graph, ValueId id) { return graph.type(id).shape.element_count(); }

class BehindSums {
 public:
  explicit BehindSums(const Graph& graph)
      : graph_(graph), readers_(graph.value_count()), vanishes_(graph.value_count(), false) {
    for (std::size_t i = 0; i < graph.node_count(); ++i)
      for (std::size_t k = 0; k < graph.nodes()[i].inputs.size(); ++k)
        if (const ValueId id = graph.nodes()[i].inputs[k]; id.valid())
          readers_[id.index()].push_back({NodeId(i), k});
    find_vanishing();
  }

  Graph run() {
    return transform::prune(
        transform::rewrite(graph_, [&](Rewrite& rewrite, const Node& node) { visit(rewrite, node); }));
  }

 private:
  struct Reader {
    NodeId node;
    std::size_t input;
  };

  // Whether a factor of this input may be taken out of it.
  bool takes_factor(const Node& node, std::size_t input) const {
    const bool product = is_matrix_product(graph_, node) && input < 2 && node.inputs[0] != node.inputs[1];
    if (!product && !(is_sum(node) && input == 0) && !(is_weight_gradient(node) && input == 1)) return false;
    const ValueId id = node.inputs[input], result = node.outputs[0];
    if (!is_real(graph_.type(id).element) || !is_real(graph_.type(result).element)) return false;
    const std::int64_t beside = product ? elements(graph_, node.inputs[1 - input]) : elements(graph_, result);
    return elements(graph_, id) >= large * std::min(beside, elements(graph_, result));
  }

  // From the last node on: what links in front of one rely on is known.
  void find_vanishing() {
    std::vector<bool> leaves(graph_.value_count(), false);
    for (const graph::Output& output : graph_.outputs()) leaves[output.value.index()] = true;
    for (const graph::Update& update : graph_.updates()) leaves[update.next.index()] = true;
    for (std::size_t i = graph_.node_count(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      if (!link_of(graph_, node) || leaves[node.outputs[0].index()]) continue;
      const auto& readers = readers_[node.outputs[0].index()];
      vanishes_[node.outputs[0].index()] = !readers.empty() && std::ranges::all_of(readers, [&](Reader r) {
        const Node& reader = graph_.node(r.node);
        return takes_factor(reader, r.input) ||
               (link_of(graph_, reader) && vanishes_[reader.outputs[0].index()]);
      });
    }
  }

  Scaled without_factors(ValueId id) const {
    Scaled found{id, 1};
    while (vanishes_[found.value.index()]) {
      const Scaled link = *link_of(graph_, producer_of(graph_, found.value));
      found = {link.value, found.factor * link.factor};
    }
    return found;
  }

  void visit(Rewrite& rewrite, const Node& node) {
    for (std::size_t k = 0; k < std::min<std::size_t>(2, node.inputs.size()); ++k) {
      if (!takes_factor(node, k)) continue;
      const Scaled found = without_factors(node.inputs[k]);
      const std::int64_t terms = std::max<std::int64_t>(
          1, elements(graph_, node.inputs[k]) / std::max<std::int64_t>(1, elements(graph_, node.outputs[0])));
      if (found.factor != 1 && is_moderate_behind(found.factor, terms))
        return take_out(rewrite, node, k, found);
    }
    rewrite.keep(node);
  }

  void take_out(Rewrite& rewrite, const Node& node, std::size_t input, const Scaled& found) {
    std::vector<Var> inputs = rewrite.now(node.inputs);
    inputs[input] = as_type(rewrite, found.value, graph_.type(node.inputs[input]).element);
    graph::Attributes attributes = node.attributes;
    const bool product = is_matrix_product(graph_, node);
    const bool beside =
        product && elements(graph_, node.inputs[1 - input]) <= elements(graph_, node.outputs[0]);
    if (beside)
      inputs[1 - input] = inputs[1 - input] * found.factor;
    else if (node.op == "Gemm")
      attributes.set("alpha", attributes.number("alpha", 1) * found.factor);
    Var result = rewrite.builder().node(node.op, inputs, attributes)[0];
    if (!beside && node.op != "Gemm") result = result * found.factor;
    rewrite.replace(node, std::span(&result, 1));
  }

  // The value, converted once for all that read it so.
  Var as_type(Rewrite& rewrite, ValueId id, ElementType type) {
    if (graph_.type(id).element == type) return rewrite.now(id);
    Var& made = converted_[{id, type}];
    if (!made.valid()) made = op::cast(rewrite.now(id), type);
    return made;
  }

  const Graph& graph_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<bool> vanishes_;  // by value: nobody is left who reads it
  std::map<std::pair<ValueId, ElementType>, Var> converted_;
};

// ---- sums over rows

// Whether the node sums the rows of a matrix.
bool sums_rows(const Graph& graph, const Node& node) {
  if (node.op != "ReduceSum" || graph.type(node.inputs[0]).shape.rank() != 2) return false;
  if (node.inputs.size() < 2 || !node.inputs[1].valid()) return false;
  const graph::Value& axes = graph.value(node.inputs[1]);
  return axes.kind == ValueKind::constant && axes.data.element_count() == 1 &&
         normalize_axis(static_cast<std::int64_t>(axes.data.at(0)), 2) == 0;
}

struct ScaledProduct {
  const Node* product;
  double factor;
};

// The product of which the value is a multiple, where nobody else reads either, nor what lies between.
std::optional<ScaledProduct> product_of(const Graph& graph, ValueId id, const std::vector<int>& uses) {
  for (double factor = 1;;) {
    if (graph.value(id).kind != ValueKind::computed || uses[id.index()] != 1) return std::nullopt;
    const Node& node = producer_of(graph, id);
    if (is_matrix_product(graph, node)) return ScaledProduct{&node, factor};
    const auto link = node.op == "Add" ? std::nullopt : link_of(graph, node);
    if (!link) return std::nullopt;
    id = link->value, factor *= link->factor;
  }
}

// The value in f32: as it was before it was rounded, where it was.
ValueId in_f32(const Graph& graph, ValueId id) {
  const graph::Value& value = graph.value(id);
  if (value.kind == ValueKind::computed && value.type.element == ElementType::bf16 &&
      is_cast(graph, graph.node(value.producer)))
    return graph.node(value.producer).inputs[0];
  return id;
}

// Two rows and more, without a third operand, and a right operand that is there in f32.
bool gains(const Graph& graph, const Node& product) {
  const bool has_sum = product.inputs.size() > 2 && product.inputs[2].valid();
  return !has_sum && graph.type(product.outputs[0]).shape[0] > 1 &&
         is_real(graph.type(product.inputs[0]).element) &&
         graph.type(in_f32(graph, product.inputs[1])).element == ElementType::f32;
}

void sum_first(Rewrite& rewrite, const Node& node, const ScaledProduct& found) {
  const Graph& graph = rewrite.old();
  const Node& product = *found.product;
  Var rows = rewrite.now(in_f32(graph, product.inputs[0]));
  if (rows.element() != ElementType::f32) rows = op::cast(rows, ElementType::f32);
  const bool turned = product.attributes.integer("transA", 0) != 0;
  const Var sum = op::reduce_sum(rows, {turned ? 1 : 0}, true);
  const op::GemmAttributes attributes{.transpose_a = turned,
                                      .transpose_b = product.attributes.integer("transB", 0) != 0,
                                      .alpha = found.factor * product.attributes.number("alpha", 1)};
  const graph::ValueType& type = graph.type(node.outputs[0]);
  Var result = op::gemm(sum, rewrite.now(in_f32(graph, product.inputs[1])), {}, attributes);
  result = op::reshape(result, type.shape);
  if (type.element != ElementType::f32) result = op::cast(result, type.element);
  rewrite.replace(node, std::span(&result, 1));
}

}  // namespace

std::optional<Scaled> scaled_by_number(const Graph& graph, const Node& node) {
  if (node.op != "Neg" && node.op != "Add" && node.op != "Mul") return std::nullopt;
  if (!is_real(graph.type(node.outputs[0]).element)) return std::nullopt;
  if (node.op == "Neg") return Scaled{node.inputs[0], -1};
  if (node.op == "Add" && node.inputs[0] == node.inputs[1]) return Scaled{node.inputs[0], 2};
  if (node.op != "Mul") return std::nullopt;
  for (const std::size_t side : {0u, 1u}) {
    const auto factor = uniform_constant(graph, node.inputs[1 - side]);
    if (factor && graph.type(node.inputs[side]) == graph.type(node.outputs[0]))
      return Scaled{node.inputs[side], *factor};
  }
  return std::nullopt;
}

bool is_moderate_behind(double factor, std::int64_t terms) {
  if (!std::isfinite(factor) || factor == 0) return false;
  const int exponent = std::ilogb(factor);
  return exponent <= largest_exponent &&
         exponent >= -largest_exponent - std::ilogb(static_cast<double>(std::max<std::int64_t>(1, terms)));
}

Graph scale_behind_sums(const Graph& graph) {
  if (graph.updates().empty()) return graph;
  return BehindSums(graph).run();
}

Graph sum_before_products(const Graph& graph) {
  if (graph.updates().empty()) return graph;
  const std::vector<int> uses = graph.use_counts();
  return transform::prune(transform::rewrite(graph, [&](Rewrite& rewrite, const Node& node) {
    const auto found = sums_rows(graph, node) ? product_of(graph, node.inputs[0], uses) : std::nullopt;
    if (!found || !gains(graph, *found->product) || !is_moderate_behind(found->factor, 1))
      return rewrite.keep(node);
    sum_first(rewrite, node, *found);
  }));
}

Graph sum_squares(const Graph& graph) {
  if (graph.updates().empty()) return graph;
  const std::vector<int> uses = graph.use_counts();
  const auto squared = [&](const Node& node) -> std::optional<ValueId> {
    if (!is_sum(node) || graph.type(node.outputs[0]).element != ElementType::f32) return std::nullopt;
    const graph::Value& value = graph.value(node.inputs[0]);
    if (value.kind != ValueKind::computed || uses[node.inputs[0].index()] != 1) return std::nullopt;
    const Node& product = graph.node(value.producer);
    const bool square = product.op == "Mul" && product.inputs[0] == product.inputs[1];
    return square ? std::optional(product.inputs[0]) : std::nullopt;
  };
  return transform::prune(transform::rewrite(graph, [&](Rewrite& rewrite, const Node& node) {
    const auto x = squared(node);
    if (!x || elements(graph, node.outputs[0]) == 0) return rewrite.keep(node);
    std::vector<Var> inputs = rewrite.now(node.inputs);
    inputs[0] = rewrite.now(*x);
    Var sum = rewrite.builder().node("ReduceSumSquare", inputs, node.attributes)[0];
    if (node.op == "ReduceMean")
      sum = sum * (static_cast<double>(elements(graph, node.outputs[0])) /
                   static_cast<double>(elements(graph, *x)));
    rewrite.replace(node, std::span(&sum, 1));
  }));
}

}  // namespace superstep::target::cpu
