// Attention as one step, and its gradient as another (AttentionMatch: lowering.h).
#pragma once

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// Whether the kernels take it where its operands lie, and are faster than its parts.
bool attention_fits(const Lowering& lowering, const AttentionMatch& match);
void lower_attention(Lowering& lowering, const AttentionMatch& match);
void lower_attention_gradient(Lowering& lowering, const AttentionMatch& match);

}  // namespace superstep::target::cpu
