// Attention over the positions of a sequence, in several heads, as every transformer of the zoo has it
// (A. Vaswani et al., NeurIPS 2017, equation 1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "superstep/workload/layers.h"

namespace superstep::workload {

// [N, T, heads * size] -> [N, heads, T, size].
Var split_heads(Var x, std::int64_t heads);

// softmax(q k' / sqrt(size) + hidden) v of q [N, heads, T, size], k and v [N, heads, S, size] -> [N, T, heads
// * size]. `hidden`, where there is one, is added to the scores [N, heads, T, S]: 0, or a large negative
// number where nothing may be seen. A share of the weights is dropped out in training.
Var attention(Layers& layers, Var q, Var k, Var v, std::optional<Var> hidden, double dropped);

}  // namespace superstep::workload
