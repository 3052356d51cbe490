// Operators that move nothing: on this machine they are views of tensors.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "superstep/bsp/graph/graph.h"
#include "superstep/target/ipu/cut/cut.h"

namespace superstep::target::ipu {

// The results of a layout operator as views of its inputs; none when the operator is not one, or needs to
// know an input that is computed. `operand` gives the tensor of an input.
std::optional<std::vector<bsp::Tensor>> layout_views(const Operation& operation, bsp::Graph& graph,
                                                     const std::function<bsp::Tensor(std::size_t)>& operand);

}  // namespace superstep::target::ipu
