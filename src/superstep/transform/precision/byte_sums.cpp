#include "superstep/transform/precision/byte_sums.h"

#include <algorithm>

#include "superstep/op/core/definition.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

bool is_elementwise(const Node& node) {
  return node.outputs.size() == 1 && (op::traits_of(node.op).elementwise || node.op == "BatchNormalization");
}

}  // namespace

ByteSums::ByteSums(const Graph& graph, FunctionRef<bool(const Node&)> takes)
    : terms_(graph.node_count()),
      readers_(graph.value_count(), 0),
      made_by_(graph.value_count()),
      chain_of_(graph.value_count()) {
  for (const Node& node : graph.nodes())
    for (const ValueId input : node.inputs)
      if (input.valid()) ++readers_[input.index()];
  for (const graph::Output& output : graph.outputs()) ++readers_[output.value.index()];
  for (const graph::Update& update : graph.updates()) ++readers_[update.next.index()];
  for (std::size_t i = 0; i < graph.node_count(); ++i) visit(graph, i, takes(graph.nodes()[i]));
}

void ByteSums::visit(const Graph& graph, std::size_t i, bool taken) {
  const Node& node = graph.nodes()[i];
  const ValueId result = node.outputs[0];
  if (taken) {
    made_by_[result.index()] = i;
    if (readers_[result.index()] == 1) chain_of_[result.index()] = i;
    return;
  }
  if (!is_elementwise(node)) return;
  if (node.op == "Add") terms_[i] = choose(graph, node);
  std::size_t alike = 0;
  Product chain;
  for (const ValueId input : node.inputs) {
    if (!input.valid() || graph.type(input) != graph.type(result)) continue;
    ++alike;
    made_by_[result.index()] = std::max(made_by_[result.index()], made_by_[input.index()]);
    chain = chain_of_[input.index()];
  }
  if (alike == 1 && readers_[result.index()] == 1) chain_of_[result.index()] = chain;
}

std::optional<std::size_t> ByteSums::choose(const Graph& graph, const Node& sum) const {
  const ValueId a = sum.inputs[0], b = sum.inputs[1];
  if (a == b || graph.type(a) != graph.type(b) || graph.type(a).element != ElementType::f32)
    return std::nullopt;
  for (const std::size_t k : {0u, 1u}) {
    const ValueId bytes = sum.inputs[k], other = sum.inputs[1 - k];
    const Product product = chain_of_[other.index()];
    if (made_by_[bytes.index()] && product && *made_by_[bytes.index()] < *product) return k;
  }
  return std::nullopt;
}

}  // namespace superstep::transform
