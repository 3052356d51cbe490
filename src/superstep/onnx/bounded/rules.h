// What operators make of axes whose extent is a bound (onnx/bounded/bounds.h).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "superstep/graph/attributes.h"
#include "superstep/onnx/bounded/bounds.h"

namespace superstep::onnx {

// The outputs of a node that reads bounded axes, or whose shape follows how much of one is taken; nothing
// where it does neither. Axes of the outputs that are bounded are known as such. Throws Error (unsupported)
// where the operator mixes what is taken with what is not, and has no rule here that keeps them apart.
std::optional<std::vector<Var>> emit_bounded(Emitter& emitter, std::string_view op,
                                             const std::vector<Var>& inputs,
                                             const graph::Attributes& attributes, int outputs);

// One or the other, as a condition says: both may be bounded, and of different bounds along one axis.
Var select_bounded(Emitter& emitter, Var condition, Var a, Var b);

}  // namespace superstep::onnx
