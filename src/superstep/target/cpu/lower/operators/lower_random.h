// Random numbers' addresses, for kernels that make masks themselves.
#pragma once

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// Emits the step that finds where the numbers of a superstep.RandomMask begin; its result is a
// kernels::RandomAddress.
DraftOperand emit_random_address(Lowering& lowering, const Node& mask);

}  // namespace superstep::target::cpu
