#include "superstep/transform/expand.h"

#include <algorithm>

#include "superstep/op/core/definition.h"
#include "superstep/op/core/file_functions.h"
#include "superstep/op/elementwise/random.h"
#include "superstep/op/move/creation.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {
namespace {

bool is_ours(const Node& node) {
  return op::get(node.op).since_opset == 0 && !op::is_function_of_files(node.op);
}

// Decompositions ask for the types of the outputs, which are not there yet: nodes of these types, that
// nobody reads and pruning removes.
std::vector<Var> stand_ins(Rewrite& rewrite, const Node& node) {
  std::vector<Var> result;
  for (ValueId id : node.outputs) {
    const graph::ValueType type = id.valid() ? rewrite.old().type(id) : graph::ValueType{};
    result.push_back(id.valid() ? op::constant_of_shape(rewrite.builder(), type.element, type.shape) : Var());
  }
  return result;
}

// Not a decomposition: the same distribution, other numbers.
void draw_in_file(Rewrite& rewrite, const Node& node) {
  const Var mask = op::drawn_mask(rewrite.builder(), node.attributes);
  rewrite.replace(node, std::span(&mask, 1));
}

void expand_node(Rewrite& rewrite, const Node& node) {
  if (node.op == "superstep.RandomMask") return draw_in_file(rewrite, node);
  const op::Definition& definition = op::get(node.op);
  if (!definition.decompose)
    throw Error(ErrorCode::unsupported, "the operator cannot be written in plain ONNX", describe(node));
  rewrite.replace(node, decomposition(rewrite, node));
}

}  // namespace

std::vector<Var> decomposition(Rewrite& rewrite, const Node& node) {
  return op::get(node.op).decompose(
      {rewrite.builder(), node.attributes, rewrite.now(node.inputs), stand_ins(rewrite, node)});
}

Graph expand_to_onnx(const Graph& graph) {
  Graph result = graph;
  // A decomposition may use operators of ours that have decompositions themselves.
  while (std::ranges::any_of(result.nodes(), is_ours))
    result = rewrite(result, [](Rewrite& rewrite, const Node& node) {
      is_ours(node) ? expand_node(rewrite, node) : rewrite.keep(node);
    });
  return prune(result);
}

}  // namespace superstep::transform
