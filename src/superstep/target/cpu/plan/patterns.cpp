#include "superstep/target/cpu/plan/patterns.h"

#include "superstep/op/core/definition.h"

namespace superstep::target::cpu {
namespace {

bool is_index(ElementType type) { return type == ElementType::i32 || type == ElementType::i64; }

}  // namespace

bool is_integer_product(const Node& node) { return node.op == "ConvInteger" || node.op == "MatMulInteger"; }

const Node& producer_of(const Graph& graph, ValueId id) { return graph.node(graph.value(id).producer); }

bool left_out_or_zero(const Graph& graph, const Node& node, std::size_t input) {
  if (node.inputs.size() <= input || !node.inputs[input].valid()) return true;
  const auto value = uniform_constant(graph, node.inputs[input]);
  return value && *value == 0;
}

std::optional<double> uniform_constant(const Graph& graph, ValueId id) {
  if (!id.valid()) return std::nullopt;
  const graph::Value& value = graph.value(id);
  if (value.kind != graph::ValueKind::constant || value.data.element_count() == 0) return std::nullopt;
  const double first = value.data.at(0);
  for (std::int64_t i = 1; i < value.data.element_count(); ++i)
    if (value.data.at(i) != first) return std::nullopt;
  return first;
}

std::optional<ValueId> before_cast(const Graph& graph, ValueId id) {
  if (graph.value(id).kind != graph::ValueKind::computed) return std::nullopt;
  const Node& node = graph.node(graph.value(id).producer);
  if (node.op != "Cast") return std::nullopt;
  const ElementType from = graph.type(node.inputs[0]).element;
  if (!is_floating(from) || from == ElementType::f16) return std::nullopt;
  return node.inputs[0];
}

ValueId behind_casts(const Graph& graph, ValueId id) {
  while (const auto source = before_cast(graph, id)) id = *source;
  return id;
}

bool has_few_channels(const Node& node, const graph::ValueType& x, const Shape& weights) {
  constexpr std::int64_t few_channels = 4, longest = 64;
  const int rank = x.shape.rank();
  if (x.element != ElementType::f32 || (rank != 4 && rank != 5)) return false;
  const std::int64_t taps = weights[rank - 1];  // of a window's row
  return node.attributes.integer("group", 1) == 1 && x.shape[1] <= few_channels && taps > 1 &&
         x.shape[1] * taps <= longest;
}

bool is_dequantized_product(const Graph& graph, const Node& node) {
  if (node.op != "DequantizeLinear" || graph.type(node.inputs[0]).element != ElementType::i32) return false;
  if (graph.value(node.inputs[0]).kind != graph::ValueKind::computed) return false;
  const Node& product = producer_of(graph, node.inputs[0]);
  return is_integer_product(product) && left_out_or_zero(graph, node, 2) &&
         graph.type(node.outputs[0]).element == ElementType::f32;
}

bool is_read_bytes(const Graph& graph, const Node& node) {
  if (node.op != "DequantizeLinear" || graph.type(node.inputs[0]).element != ElementType::u8) return false;
  const auto one_known = [&](std::size_t input) {
    return graph.type(node.inputs[input]).shape.element_count() == 1 &&
           uniform_constant(graph, node.inputs[input]);
  };
  const bool zero_point = node.inputs.size() > 2 && node.inputs[2].valid();
  return graph.type(node.outputs[0]).element == ElementType::f32 && one_known(1) &&
         (!zero_point || one_known(2));
}

bool is_zero(const Graph& graph, ValueId id) {
  const graph::Value& value = graph.value(id);
  if (value.kind == graph::ValueKind::constant) return uniform_constant(graph, id) == 0.0;
  if (value.kind != graph::ValueKind::computed) return false;
  const Node& node = graph.node(value.producer);
  return node.op == "ConstantOfShape" &&
         (!node.attributes.has("value") || node.attributes.tensor("value").at(0) == 0);
}

bool adds_rows(const Graph& graph, const Node& node) {
  const graph::ValueType &indices = graph.type(node.inputs[1]), &updates = graph.type(node.inputs[2]);
  return node.attributes.text("reduction", "none") == "add" && is_index(indices.element) &&
         updates.element == ElementType::f32 && indices.shape.rank() == 2 && indices.shape[1] == 1;
}

bool adds_rows_to_zeros(const Graph& graph, const Node& node) {
  return adds_rows(graph, node) && is_zero(graph, node.inputs[0]);
}

bool adds_elements_to_zeros(const Graph& graph, const Node& node) {
  const graph::ValueType& updates = graph.type(node.inputs[2]);
  return node.attributes.text("reduction", "none") == "add" && is_zero(graph, node.inputs[0]) &&
         is_index(graph.type(node.inputs[1]).element) && updates.element == ElementType::f32;
}

bool is_optimizer(const Node& node) { return op::traits_of(node.op).work == op::WorkKind::optimizer; }

}  // namespace superstep::target::cpu
