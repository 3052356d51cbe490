// Layer normalisation that a model writes out as a formula.
#pragma once

#include <optional>

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// (x - mean) / sqrt(variance + epsilon) over the axes from `axis` on, times `scale`, plus `shift` where these
// are valid.
struct WrittenNorm {
  graph::ValueId x, scale, shift;
  int axis = 0;
  double epsilon = 0;
};

// What the node computes, where that is such a formula of f32 values: the root as Sqrt or as a power, the
// quotient as Div, or as a product with a reciprocal or a power; the square as a product or a power; scale
// and shift of the normalised axes' shape.
std::optional<WrittenNorm> written_norm(const graph::Graph& graph, const graph::Node& node);

}  // namespace superstep::target::cpu
