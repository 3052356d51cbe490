#include "superstep/onnx/serving_form.h"

#include <algorithm>
#include <set>

#include "superstep/transform/rewrite.h"

namespace superstep::onnx {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using transform::Rewrite;

std::set<ValueId> values_read(const Graph& graph) {
  std::set<ValueId> read;
  for (const Node& node : graph.nodes()) read.insert(node.inputs.begin(), node.inputs.end());
  for (const graph::Output& output : graph.outputs()) read.insert(output.value);
  return read;
}

bool has_training_mode(const Node& node) {
  if (node.op == "BatchNormalization") return node.attributes.integer("training_mode", 0) != 0;
  return node.op == "Dropout" && (node.inputs.size() > 2 || node.outputs.size() > 1);
}

// As ONNX has it: the ratio stays, for a training to come.
void serve(Rewrite& rewrite, const Node& node) {
  std::vector<op::Var> inputs = rewrite.now(node.inputs);
  if (node.op == "Dropout") inputs.resize(std::min<std::size_t>(inputs.size(), 2));
  graph::Attributes attributes = node.attributes;
  attributes.erase("training_mode");
  const op::Var y = rewrite.builder().node(node.op, inputs, attributes, 1)[0];
  rewrite.replace(node, std::span(&y, 1));
}

}  // namespace

graph::Graph serving_form(const graph::Graph& graph) {
  const std::set<ValueId> read = values_read(graph);
  return transform::rewrite(graph, [&](Rewrite& rewrite, const Node& node) {
    const bool others_read =
        std::any_of(node.outputs.begin() + (node.outputs.empty() ? 0 : 1), node.outputs.end(),
                    [&](ValueId id) { return id.valid() && read.contains(id); });
    if (has_training_mode(node) && !others_read)
      serve(rewrite, node);
    else
      rewrite.keep(node);
  });
}

}  // namespace superstep::onnx
