// The gradient of softmax as one kernel (SoftmaxGradient: lowering.h).
#pragma once

#include <optional>
#include <vector>

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// `consumers[v]`: the nodes that read value v.
std::optional<SoftmaxGradient> match_softmax_gradient(const Graph& graph, NodeId root,
                                                      const std::vector<std::vector<NodeId>>& consumers);
bool sums_along(const Graph& graph, NodeId sum, int axis);
bool softmax_gradient_fits(const Lowering& lowering, const SoftmaxGradient& gradient);
Lowered lower_softmax_gradient(Lowering& lowering, const SoftmaxGradient& gradient);

}  // namespace superstep::target::cpu
