// Blocks of pixels to channels and back: x [N, C, H, W], any element type.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// [N, C, H, W] -> [N, C / b^2, H b, W b]. `columns_first`: the block's position varies slowest within a
// channel (mode CRD, PyTorch's pixel shuffle), else fastest over channels (mode DCR).
Var depth_to_space(Var x, std::int64_t block, bool columns_first = false);
Var space_to_depth(Var x, std::int64_t block, bool columns_first = false);  // the inverse

std::span<const Definition> rearrange_operators();

}  // namespace superstep::op
