// Fields in the order in which their elements lie, so that nothing is moved on the tile.
#pragma once

#include <cstdint>
#include <utility>

#include "superstep/bsp/graph/tensor.h"

namespace superstep::target::ipu {

// [N, C, positions] as [N, C / g, positions, g]; the tensor itself for g = 1.
bsp::Tensor in_channel_order(const bsp::Tensor& tensor, std::int64_t g);

// A field in the order in which the elements lie, and its channel group.
std::pair<bsp::Tensor, std::int64_t> field_of(const bsp::Tensor& tensor);

}  // namespace superstep::target::ipu
