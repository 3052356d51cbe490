// Products of bytes: an integer convolution or product, its dequantisation, what follows element by element,
// and the quantisation of the result, as one kernel.
#pragma once

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// The integer product behind the DequantizeLinear node `id` with the group's followers (null: none) as its
// epilogue, and the QuantizeLinear that alone reads the result, where there is one.
Lowered lower_dequantized_product(Lowering& lowering, NodeId id, const FusionGroup* group);

}  // namespace superstep::target::cpu
