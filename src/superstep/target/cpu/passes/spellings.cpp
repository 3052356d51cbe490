#include "superstep/target/cpu/passes/spellings.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

#include "superstep/op/elementwise/activation.h"
#include "superstep/target/cpu/passes/written_norm.h"
#include "superstep/target/cpu/plan/patterns.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueKind;

constexpr double tolerance =
    1e-4;                   // relative, of constants: exporters write 0.7978846 and 0.79788456 (chosen)
constexpr int deepest = 6;  // products in one another: the formulas have at most four

bool is_near(double a, double b) { return std::abs(a - b) <= tolerance * std::abs(b); }

// A product taken apart: its constant factor and all others.
struct Product {
  double constant = 1;
  std::vector<ValueId> factors;
};

class Speller {
 public:
  explicit Speller(const Graph& graph) : graph_(graph) {}

  struct Gelu {
    ValueId x;
    bool by_tanh;
  };
  // What the node computes, where that is a GELU.
  std::optional<Gelu> gelu(const Node& node) const {
    if (node.op != "Mul" && node.op != "Div") return std::nullopt;
    const ValueId y = node.outputs[0];
    if (graph_.type(y).element != ElementType::f32) return std::nullopt;
    for (ValueId factor : product_of(y, ValueId()).factors) {
      const auto gate = gate_of(factor);
      if (!gate || graph_.type(gate->x).shape != graph_.type(y).shape) continue;
      const Product whole = product_of(y, gate->x);
      const bool two = whole.factors.size() == 2 && std::ranges::count(whole.factors, gate->x) == 1 &&
                       std::ranges::count(whole.factors, factor) == 1;
      if (two && is_near(whole.constant, 0.5)) return gate;
    }
    return std::nullopt;
  }

 private:
  const Node* producer(ValueId id, std::string_view op) const {
    if (!id.valid() || graph_.value(id).kind != ValueKind::computed) return nullptr;
    const Node& node = graph_.node(graph_.value(id).producer);
    return node.op == op ? &node : nullptr;
  }

  // Products and quotients by constants are gone into, but not into `whole`.
  Product product_of(ValueId id, ValueId whole) const {
    Product product;
    add_factor(id, whole, false, deepest, product);
    return product;
  }
  void add_factor(ValueId id, ValueId whole, bool divides, int depth, Product& product) const {
    const auto constant = uniform_constant(graph_, id);
    if (constant && *constant != 0) {
      product.constant *= divides ? 1 / *constant : *constant;
      return;
    }
    const Node* node = id == whole || divides || depth == 0 ? nullptr : producer(id, "Mul");
    if (!node && id != whole && depth > 0)
      if (const Node* quotient = producer(id, "Div");
          quotient && uniform_constant(graph_, quotient->inputs[1]))
        node = quotient;
    if (!node || (node->op == "Div" && uniform_constant(graph_, node->inputs[1]) == 0.0)) {
      product.factors.push_back(id);
      return;
    }
    add_factor(node->inputs[0], whole, false, depth - 1, product);
    add_factor(node->inputs[1], whole, node->op == "Div", depth - 1, product);
  }

  // x of 1 + erf(x / sqrt 2) or of 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
  std::optional<Gelu> gate_of(ValueId id) const {
    const Node* sum = producer(id, "Add");
    if (!sum) return std::nullopt;
    for (std::size_t side : {0u, 1u}) {
      if (uniform_constant(graph_, sum->inputs[1 - side]) != 1.0) continue;
      if (const Node* erf = producer(sum->inputs[side], "Erf")) return argument_of_erf(erf->inputs[0]);
      if (const Node* tanh = producer(sum->inputs[side], "Tanh")) return argument_of_tanh(tanh->inputs[0]);
    }
    return std::nullopt;
  }

  // One product alone: what it multiplies may be a product of the model's own.
  std::optional<Gelu> argument_of_erf(ValueId id) const {
    for (const char* op : {"Mul", "Div"})
      if (const Node* node = producer(id, op))
        for (std::size_t side : {0u, 1u}) {
          const auto constant = uniform_constant(graph_, node->inputs[1 - side]);
          if (!constant || (node->op == "Div" && side == 1)) continue;
          const double factor = node->op == "Div" ? 1 / *constant : *constant;
          if (is_near(factor, 1 / std::numbers::sqrt2)) return Gelu{node->inputs[side], false};
        }
    return std::nullopt;
  }

  std::optional<Gelu> argument_of_tanh(ValueId id) const {
    const Product scaled = product_of(id, ValueId());
    if (scaled.factors.size() != 1 || !is_near(scaled.constant, std::sqrt(2 / std::numbers::pi)))
      return std::nullopt;
    const Node* sum = producer(scaled.factors[0], "Add");
    if (!sum) return std::nullopt;
    for (std::size_t side : {0u, 1u})
      if (is_cubic_term(sum->inputs[1 - side], sum->inputs[side])) return Gelu{sum->inputs[side], true};
    return std::nullopt;
  }

  // 0.044715 x^3, the power as one or as products.
  bool is_cubic_term(ValueId id, ValueId x) const {
    const Product term = product_of(id, x);
    if (!is_near(term.constant, 0.044715)) return false;
    const bool products = term.factors.size() == 3 && std::ranges::count(term.factors, x) == 3;
    if (products || term.factors.size() != 1) return products;
    const Node* power = producer(term.factors[0], "Pow");
    return power && power->inputs[0] == x && uniform_constant(graph_, power->inputs[1]) == 3.0;
  }

  const Graph& graph_;
};

op::Var layer_norm(transform::Rewrite& rewrite, const WrittenNorm& norm) {
  const op::Var x = rewrite.now(norm.x);
  op::Var scale = rewrite.now(norm.scale);
  if (!scale.valid()) {
    const auto& extents = x.shape().extents();
    const Shape shape(std::vector<std::int64_t>(extents.begin() + norm.axis, extents.end()));
    scale = rewrite.builder().constant(Tensor::full(ElementType::f32, shape, 1));
  }
  return rewrite.builder().node1("LayerNormalization", {x, scale, rewrite.now(norm.shift)},
                                 {{"axis", std::int64_t{norm.axis}}, {"epsilon", norm.epsilon}});
}

}  // namespace

Graph recognize_spellings(const Graph& model) {
  const Speller speller(model);
  bool changed = false;
  Graph result = transform::rewrite(model, [&](transform::Rewrite& rewrite, const Node& node) {
    op::Var y;
    if (const auto gelu = speller.gelu(node))
      y = op::gelu(rewrite.now(gelu->x), gelu->by_tanh);
    else if (const auto norm = written_norm(model, node))
      y = layer_norm(rewrite, *norm);
    else
      return rewrite.keep(node);
    rewrite.replace(node, std::span(&y, 1));
    changed = true;
  });
  return changed ? transform::prune(result) : model;
}

}  // namespace superstep::target::cpu
