// Attention, recognised in the operators that it is written with: product, scale, mask, softmax, dropout,
// product; heads of keys that are repeated for the heads of queries; and what differentiation makes of them.
#pragma once

#include <optional>
#include <vector>

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// Every attention of the body whose scores and weights nobody else reads. In training an attention is taken
// together with its gradient or not at all.
std::vector<AttentionMatch> find_attentions(const Lowering& lowering,
                                            const std::vector<SoftmaxGradient>& softmax_gradients);

}  // namespace superstep::target::cpu
