#include "superstep/transform/border.h"

namespace superstep::transform {

using graph::Phase;

Phase phase_of(const graph::Graph& graph, graph::ValueId value) {
  const graph::Value& found = graph.value(value);
  return found.kind == graph::ValueKind::computed ? graph.node(found.producer).phase : Phase::forward;
}

std::vector<bool> gradient_values(const graph::Graph& graph) {
  std::vector<bool> gradients(graph.value_count(), false);
  const auto mark = [&](graph::ValueId id) {
    if (id.valid() && phase_of(graph, id) == Phase::backward) gradients[id.index()] = true;
  };
  for (const graph::Node& node : graph.nodes())
    if (node.phase == Phase::update)
      for (graph::ValueId input : node.inputs) mark(input);
  for (const graph::Update& update : graph.updates()) mark(update.next);
  return gradients;
}

bool may_stand_for(Phase replacement, Phase replaced, bool is_gradient) {
  if (replacement == replaced) return true;
  return replacement == Phase::forward && replaced == Phase::backward && !is_gradient;
}

}  // namespace superstep::transform
