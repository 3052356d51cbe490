#include "superstep/onnx/parameters.h"

#include "superstep/transform/rewrite.h"

namespace superstep::onnx {
namespace {

constexpr std::size_t mean_input = 3;  // of BatchNormalization; the variance follows

std::set<graph::ValueId> trained(const graph::Graph& graph, const std::set<graph::ValueId>& constants) {
  std::set<graph::ValueId> result;
  for (const graph::Node& node : graph.nodes())
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (constants.contains(node.inputs[i]) && !(node.op == "BatchNormalization" && i >= mean_input))
        result.insert(node.inputs[i]);
  return result;
}

}  // namespace

graph::Graph parameters_to_states(const graph::Graph& graph, const std::set<graph::ValueId>& constants) {
  const graph::Graph used = transform::prune(graph);
  std::set<graph::ValueId> kept;
  for (graph::ValueId id : constants)
    if (const graph::ValueId now = used.find_value(graph.value(id).name); now.valid()) kept.insert(now);
  transform::Rewrite rewrite(used);
  for (graph::ValueId id : trained(used, kept))
    rewrite.replace(id, rewrite.builder().state(used.value(id).name, used.value(id).data));
  rewrite.visit_nodes([&](const graph::Node& node) { rewrite.keep(node); });
  return rewrite.finish();
}

}  // namespace superstep::onnx
