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

}  // namespace

graph::Graph prepare_for_tiles(const graph::Graph& graph) {
  return prepare_graph(transform::rewrite(graph, [](transform::Rewrite& rewrite, const graph::Node& node) {
    if (is_training_normalization(node))
      normalize_by_moments(rewrite, node);
    else
      rewrite.keep(node);
  }));
}

}  // namespace superstep::target::ipu
