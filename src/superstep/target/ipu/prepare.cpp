#include "superstep/target/ipu/prepare.h"

#include "superstep/op/arithmetic.h"
#include "superstep/op/cast.h"
#include "superstep/op/channel_statistics.h"
#include "superstep/target/ports.h"
#include "superstep/transform/rewrite.h"

namespace superstep::target::ipu {
namespace {

using op::Var;

bool is_training_normalization(const graph::Node& node) {
  return node.op == "BatchNormalization" && node.attributes.integer("training_mode", 0) != 0;
}

Var mixed(Var running, Var batch, double momentum) {
  return running * momentum + op::cast(batch, running.element()) * (1.0 - momentum);
}

void normalize_by_moments(transform::Rewrite& rewrite, const graph::Node& node) {
  const std::vector<Var> inputs = rewrite.now(node.inputs);
  const op::ChannelMoments moments = op::channel_moments(inputs[0]);
  const double momentum = node.attributes.number("momentum", 0.9);
  graph::Attributes attributes = node.attributes;
  attributes.erase("training_mode");
  const auto as_statistics = [&](Var value) { return op::cast(value, inputs[3].element()); };
  std::vector<Var> outputs{rewrite.builder().node1(
      "BatchNormalization",
      {inputs[0], inputs[1], inputs[2], as_statistics(moments.mean), as_statistics(moments.variance)},
      attributes)};
  if (node.outputs.size() > 1) outputs.push_back(mixed(inputs[3], moments.mean, momentum));
  if (node.outputs.size() > 2) outputs.push_back(mixed(inputs[4], moments.variance, momentum));
  rewrite.replace(node, outputs);
}

// Inputs of one tensor in ONNX's optimisers: itself, its gradient and its buffers; 0 for other operators.
std::size_t optimizer_parts(const graph::Node& node) {
  return node.op == "Adagrad" || node.op == "Momentum" ? 3 : node.op == "Adam" ? 4 : 0;
}

bool optimizes_several(const graph::Node& node) {
  const std::size_t parts = optimizer_parts(node);
  return parts > 0 && node.inputs.size() > 2 + parts;
}

// A node a tensor: inputs are rate, count, then all tensors, all gradients and each of the buffers in turn.
void optimize_apart(transform::Rewrite& rewrite, const graph::Node& node) {
  const std::vector<Var> all = rewrite.now(node.inputs);
  const std::size_t parts = optimizer_parts(node), count = (all.size() - 2) / parts;
  std::vector<Var> results(node.outputs.size());
  for (std::size_t tensor = 0; tensor < count; ++tensor) {
    std::vector<Var> inputs{all[0], all[1]};
    for (std::size_t part = 0; part < parts; ++part) inputs.push_back(all[2 + part * count + tensor]);
    const std::vector<Var> updated =
        rewrite.builder().node(node.op, inputs, node.attributes, static_cast<int>(parts) - 1);
    for (std::size_t part = 0; part + 1 < parts; ++part)
      if (const std::size_t i = part * count + tensor; i < results.size() && node.outputs[i].valid())
        results[i] = updated[part];
  }
  rewrite.replace(node, results);
}

}  // namespace

graph::Graph prepare_for_tiles(const graph::Graph& graph) {
  return prepare_graph(transform::rewrite(graph, [](transform::Rewrite& rewrite, const graph::Node& node) {
    if (is_training_normalization(node))
      normalize_by_moments(rewrite, node);
    else if (optimizes_several(node))
      optimize_apart(rewrite, node);
    else
      rewrite.keep(node);
  }));
}

}  // namespace superstep::target::ipu
