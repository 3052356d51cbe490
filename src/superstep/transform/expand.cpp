#include "superstep/transform/expand.h"

#include <algorithm>

#include "superstep/op/definition.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {
namespace {

bool is_ours(const Node& node) { return op::get(node.op).since_opset == 0; }

void expand_node(Rewrite& rewrite, const Node& node) {
  const op::Definition& definition = op::get(node.op);
  if (!definition.decompose)
    throw Error(ErrorCode::unsupported, "the operator cannot be written in plain ONNX", describe(node));
  const op::DerivativeContext context{rewrite.builder(), node.attributes, rewrite.now(node.inputs),
                                      std::vector<Var>(node.outputs.size())};
  rewrite.replace(node, definition.decompose(context));
}

}  // namespace

Graph expand_to_onnx(const Graph& graph) {
  Graph result = graph;
  // A decomposition may use operators of ours that have decompositions themselves.
  while (std::ranges::any_of(result.nodes(), is_ours))
    result = rewrite(result, [](Rewrite& rewrite, const Node& node) {
      is_ours(node) ? expand_node(rewrite, node) : rewrite.keep(node);
    });
  return result;
}

}  // namespace superstep::transform
