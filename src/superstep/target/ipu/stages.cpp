// Which stage of a pipeline, and so which chip, each node of a graph belongs to.
#include <algorithm>

#include "superstep/machine/work.h"
#include "superstep/target/ipu/chips.h"

namespace superstep::target::ipu {

std::uint32_t ChipLayout::chips() const {
  auto chips = static_cast<std::uint32_t>(shares.size());
  while (chips * static_cast<std::uint32_t>(replicas) > 1 && chips * static_cast<std::uint32_t>(replicas) % 2)
    ++chips;
  return chips;
}

std::vector<std::size_t> stages_of(const graph::Graph& graph, std::span<const int> shares) {
  std::vector<std::size_t> stages(graph.node_count(), 0);
  if (shares.size() < 2) return stages;
  std::vector<machine::Work> works = machine::works_of(graph, machine::precision_from_name("f32"));
  machine::assign_stages(graph, works, shares);
  for (const machine::Work& work : works)
    for (const graph::NodeId node : work.nodes) stages[node.index()] = work.stage;
  // Kernels join nodes that lie apart: a node waits for what it reads.
  std::vector<std::size_t> of_value(graph.value_count(), 0);
  std::size_t number = 0;
  for (const graph::Node& node : graph.nodes()) {
    std::size_t& stage = stages[number++];
    for (const graph::ValueId input : node.inputs)
      if (input.valid()) stage = std::max(stage, of_value[input.index()]);
    for (const graph::ValueId output : node.outputs)
      if (output.valid()) of_value[output.index()] = stage;
  }
  return stages;
}

}  // namespace superstep::target::ipu
