// Products with stored weights as the convolutions that kernels take them for: what choices among kernels and
// types count the cycles of.
#pragma once

#include <optional>

#include "superstep/graph/graph.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/core/image.h"

namespace superstep::target::cpu {

// Over f32, without epilogue. None over volumes, and where the attributes are not those of a window.
std::optional<kernels::Convolution> product_as_convolution(const graph::Graph& graph,
                                                           const graph::Node& node);

}  // namespace superstep::target::cpu
