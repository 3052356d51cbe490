// Slices and splits as places in their input.
#include <algorithm>

#include "superstep/target/cpu/plan/layout.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;

// The elements of an integer input; nothing when it is not constant, `otherwise` when it is left out.
std::optional<std::vector<std::int64_t>> constants(const Graph& graph, const Node& node, std::size_t input,
                                                   std::vector<std::int64_t> otherwise) {
  if (input >= node.inputs.size() || !node.inputs[input].valid()) return otherwise;
  const graph::Value& value = graph.value(node.inputs[input]);
  if (value.kind != graph::ValueKind::constant) return std::nullopt;
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < value.data.element_count(); ++i)
    result.push_back(static_cast<std::int64_t>(value.data.at(i)));
  return result;
}

std::optional<std::vector<Cut>> slice_cut(const Graph& graph, const Node& node, const Strides& strides) {
  const Shape& shape = graph.type(node.inputs[0]).shape;
  const auto starts = constants(graph, node, 1, {});
  if (!starts) return std::nullopt;
  std::vector<std::int64_t> all(starts->size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const auto axes = constants(graph, node, 3, all);
  const auto steps = constants(graph, node, 4, std::vector<std::int64_t>(starts->size(), 1));
  if (!axes || !steps) return std::nullopt;
  Cut cut{0, Strides(strides.size(), 1)};
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const int axis = normalize_axis((*axes)[i], shape.rank());
    std::int64_t start = (*starts)[i];
    if (start < 0) start += shape[axis];
    // Backwards the first element is one that is there.
    start = std::clamp<std::int64_t>(
        start, 0, (*steps)[i] < 0 ? std::max<std::int64_t>(0, shape[axis] - 1) : shape[axis]);
    cut.offset += start * strides[static_cast<std::size_t>(axis)];
    cut.steps[static_cast<std::size_t>(axis)] = (*steps)[i];
  }
  return std::vector{cut};
}

std::optional<std::vector<Cut>> split_cuts(const Graph& graph, const Node& node, const Strides& strides) {
  const int axis =
      normalize_axis(node.attributes.integer("axis", 0), graph.type(node.inputs[0]).shape.rank());
  std::vector<Cut> cuts;
  std::int64_t begin = 0;
  for (graph::ValueId output : node.outputs) {
    if (!output.valid()) return std::nullopt;
    cuts.push_back({begin * strides[static_cast<std::size_t>(axis)], Strides(strides.size(), 1)});
    begin += graph.type(output).shape[axis];
  }
  return cuts;
}

}  // namespace

std::optional<std::vector<Cut>> cuts_of(const Graph& graph, const Node& node, const Strides& strides) {
  if (node.op == "Slice") return slice_cut(graph, node, strides);
  if (node.op == "Split") return split_cuts(graph, node, strides);
  return std::nullopt;
}

}  // namespace superstep::target::cpu
