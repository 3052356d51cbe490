// Convolutions over images whose channels are planes.
#pragma once

#include "superstep/target/cpu/lower/product_target.h"

namespace superstep::target::cpu {

// A convolution that the plan has over planes (plan/planar.h), with what follows it; refuses others.
Lowered lower_planar(Lowering& lowering, const Node& node, ProductTarget target);
// The gradient by the weights of such a one, which the plan has over planes; `result` is its value in f32.
Lowered lower_planar_gradient(Lowering& lowering, const Node& node, ValueId result);

}  // namespace superstep::target::cpu
