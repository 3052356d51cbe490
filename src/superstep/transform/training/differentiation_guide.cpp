#include "superstep/transform/training/differentiation_guide.h"

#include <algorithm>

namespace superstep::transform {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

namespace {

using Marks = std::vector<bool>;  // by value

bool any_marked(const Marks& marks, std::span<const ValueId> ids) {
  return std::ranges::any_of(ids, [&](ValueId id) { return id.valid() && marks[id.index()]; });
}

// The values that depend on `inputs`, the inputs themselves included.
Marks depending_on(const Graph& graph, std::span<const ValueId> inputs, std::span<const ValueId> stop) {
  Marks depends(graph.value_count(), false), stopped(graph.value_count(), false);
  for (ValueId id : stop) stopped[id.index()] = true;
  const auto mark = [&](ValueId id) {
    if (id.valid() && !stopped[id.index()] && is_floating(graph.type(id).element)) depends[id.index()] = true;
  };
  std::ranges::for_each(inputs, mark);
  for (const Node& node : graph.nodes())
    if (any_marked(depends, node.inputs)) std::ranges::for_each(node.outputs, mark);
  return depends;
}

// The values that `outputs` depend on by way of marked ones, the outputs themselves included.
Marks leading_to(const Graph& graph, std::span<const ValueId> outputs, const Marks& depends) {
  Marks leads(graph.value_count(), false);
  const auto mark = [&](ValueId id) {
    if (id.valid() && depends[id.index()]) leads[id.index()] = true;
  };
  std::ranges::for_each(outputs, mark);
  for (std::size_t i = graph.node_count(); i-- > 0;)
    if (any_marked(leads, graph.nodes()[i].outputs)) std::ranges::for_each(graph.nodes()[i].inputs, mark);
  return leads;
}

}  // namespace

DifferentiationGuide make_guide(const Graph& graph, std::span<const ValueId> inputs,
                                std::span<const ValueId> outputs, std::span<const ValueId> stop) {
  DifferentiationGuide guide;
  guide.active = leading_to(graph, outputs, depending_on(graph, inputs, stop));
  for (std::size_t i = 0; i < graph.node_count(); ++i)
    if (any_marked(guide.active, graph.nodes()[i].inputs) &&
        any_marked(guide.active, graph.nodes()[i].outputs))
      guide.path.push_back(NodeId(i));
  return guide;
}

}  // namespace superstep::transform
