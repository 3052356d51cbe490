// Products with stored weights as the convolutions that kernels take them for: what choices among kernels and
// types count the cycles of.
#pragma once

#include <optional>

#include "superstep/graph/graph.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/core/image.h"

namespace superstep::target::cpu {

// Over f32, without epilogue; a ConvTranspose that is no pointwise product as the convolution whose gradient
// by the input it is: y is its x there. None over volumes, and where the attributes are not those of a
// window.
std::optional<kernels::Convolution> product_as_convolution(const graph::Graph& graph,
                                                           const graph::Node& node);

// The same as it is on bytes: a ConvTranspose as a convolution to blocks
// (transform/transposed_convolution.h).
std::optional<kernels::Convolution> product_on_bytes_as_convolution(const graph::Graph& graph,
                                                                    const graph::Node& node);

}  // namespace superstep::target::cpu
