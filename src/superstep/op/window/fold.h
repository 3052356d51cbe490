// Putting blocks, largest elements and pictures back into larger pictures.
#pragma once

#include "superstep/op/core/definition.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/window/pooling.h"

namespace superstep::op {

// The sum of blocks x [N, C * block elements, blocks] at the places of a convolution's windows over a
// picture: [N, C, image...]. The transpose of cutting a picture into overlapping blocks.
Var col2im(Var x, const std::vector<std::int64_t>& image, const std::vector<std::int64_t>& block,
           const ConvAttributes& attributes = {});

// x at `indices` (positions in the flattened result, as max_pool gives them), zeros elsewhere. `shape`: the
// result's; {}: the smallest that the windows of the pooling attributes cover.
Var max_unpool(Var x, Var indices, const PoolAttributes& attributes, const Shape& shape = {});

// The middle of x, or x in the middle of zeros, at extents `shape` of `axes` ({}: all).
Var center_crop_pad(Var x, const std::vector<std::int64_t>& shape,
                    const std::vector<std::int64_t>& axes = {});

std::span<const Definition> fold_operators();  // Col2Im MaxUnpool CenterCropPad

}  // namespace superstep::op
