// Convolutions and matrix products, with the element-wise operators that follow them.
#pragma once

#include <optional>

#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/core/image.h"
#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// The product of a fusion group, its followers as the kernel's epilogue. `group` may be null: the product
// alone. Refuses when the followers are not an epilogue or no kernel takes the shapes.
Lowered lower_product(Lowering& lowering, NodeId product, const FusionGroup* group);

// Whether the group is a pointwise convolution whose result a depthwise one alone reads, so that the two may
// run as one step (kernels/expanded_depthwise.h).
bool expands_for_depthwise(const Lowering& lowering, const FusionGroup& group);
// The depthwise convolution with its followers, and the expansion in front of it. `group` may be null.
Lowered lower_expanded_depthwise(Lowering& lowering, const FusionGroup& expansion, NodeId depthwise,
                                 const FusionGroup* group);

// MatMul of whole numbers, and MatMulInteger of any operands.
Lowered lower_whole_product(Lowering& lowering, NodeId id);

}  // namespace superstep::target::cpu
