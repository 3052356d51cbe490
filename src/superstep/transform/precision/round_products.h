// Products on f16, computed in f32: for processors that multiply f32 alone, and with the numbers of those
// that multiply f16 and add in f32.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::transform {

// Every product and convolution of f32 reads its operands rounded to f16, and gives its result rounded to
// f16, each by a Cast there and back: what tensor cores compute, but for the order of the sums. Operands
// beyond 65,504 become infinite. Apply before differentiation: the derivative of such a pair of Casts rounds
// the gradient the same way. Parameters stay f32 (master weights).
graph::Graph round_products(const graph::Graph& model);

}  // namespace superstep::transform
