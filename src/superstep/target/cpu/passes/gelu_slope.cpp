#include "superstep/target/cpu/passes/gelu_slope.h"

#include <cmath>
#include <numbers>
#include <string_view>

#include "superstep/target/cpu/plan/patterns.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

const Node* made_by(const Graph& graph, ValueId id, std::string_view op) {
  const graph::Value& value = graph.value(id);
  if (value.kind != graph::ValueKind::computed) return nullptr;
  const Node& node = graph.node(value.producer);
  return node.op == op ? &node : nullptr;
}

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

// The operand of a commutative operator beside a constant of that value.
std::optional<ValueId> beside(const Graph& graph, const Node* node, double number) {
  for (std::size_t side : {0u, 1u}) {
    if (!node) break;
    const auto constant = uniform_constant(graph, node->inputs[side]);
    if (constant && is_near(*constant, number)) return node->inputs[1 - side];
  }
  return std::nullopt;
}

// erf(x / sqrt(2)) * 0.5 + 0.5.
std::optional<ValueId> input_of_distribution(const Graph& graph, ValueId id) {
  const auto half = beside(graph, made_by(graph, id, "Add"), 0.5);
  const auto whole = half ? beside(graph, made_by(graph, *half, "Mul"), 0.5) : std::nullopt;
  const Node* erf = whole ? made_by(graph, *whole, "Erf") : nullptr;
  if (!erf) return std::nullopt;
  if (const Node* scaled = made_by(graph, erf->inputs[0], "Div")) {
    const auto constant = uniform_constant(graph, scaled->inputs[1]);
    if (constant && is_near(*constant, std::numbers::sqrt2)) return scaled->inputs[0];
  }
  return beside(graph, made_by(graph, erf->inputs[0], "Mul"), 1 / std::numbers::sqrt2);
}

// exp(x x * -0.5) / sqrt(2 pi).
bool is_density(const Graph& graph, ValueId id, ValueId x) {
  const auto bell = beside(graph, made_by(graph, id, "Mul"), 1 / std::sqrt(2 * std::numbers::pi));
  const Node* exponential = bell ? made_by(graph, *bell, "Exp") : nullptr;
  if (!exponential) return false;
  const auto squared = beside(graph, made_by(graph, exponential->inputs[0], "Mul"), -0.5);
  const Node* square = squared ? made_by(graph, *squared, "Mul") : nullptr;
  return square && square->inputs[0] == x && square->inputs[1] == x;
}

}  // namespace

std::optional<ValueId> input_of_gelu_slope(const Graph& graph, const Node& node) {
  if (node.op != "Add") return std::nullopt;
  for (std::size_t side : {0u, 1u}) {
    const auto x = input_of_distribution(graph, node.inputs[side]);
    const Node* product = x ? made_by(graph, node.inputs[1 - side], "Mul") : nullptr;
    if (!product) continue;
    for (std::size_t factor : {0u, 1u})
      if (product->inputs[factor] == *x && is_density(graph, product->inputs[1 - factor], *x)) return x;
  }
  return std::nullopt;
}

}  // namespace superstep::target::cpu
