// Transposed convolutions as convolutions whose results are moved to their places.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "superstep/base/function_ref.h"
#include "superstep/graph/graph.h"

namespace superstep::transform {

// A ConvTranspose as a convolution of its input to `block` * `block` times the channels: those of the
// positions of the result that belong to one of the input. The tap that stands at o of the result,
// o = block * q + r, reads the input at q + t; the window spans all t that occur, and weights are zero where
// a position r of the block has no tap. Windows as large as their stride make it pointwise; a stride of 1
// leaves nothing to be moved.
struct BlockConvolution {
  std::int64_t block = 1;                            // the stride
  std::array<std::int64_t, 2> taps, before, behind;  // of the window, by axis; the padding around x
};

// None where the operator is not of two dimensions and one group, with stored weights, strides that are the
// same along both axes, padding as numbers, and a result of `block` times the input's extents.
std::optional<BlockConvolution> as_block_convolution(const graph::Graph& graph, const graph::Node& node);

// Is it pointwise?
bool is_pointwise_transposed(const graph::Graph& graph, const graph::Node& node);

// The graph with those of them that `wanted` picks as Conv and, where blocks have more than one position,
// DepthToSpace: behind the element-wise operators of one input that alone read the result, so that these
// directly follow the convolution. Weights and biases are taken from the data of states and constants, as
// they are now.
graph::Graph expand_transposed(const graph::Graph& graph, FunctionRef<bool(const graph::Node&)> wanted);

}  // namespace superstep::transform
