// Integers that stand for real numbers: x = (q - zero point) * scale, and products of such tensors.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// round(x / scale) + zero point, halves to even, limited to the zero point's type (u8 where it is left
// out). Scale and zero point: scalars, or one a slice of `axis`. The derivative is zero: what training with
// quantisation takes for it (straight-through) is the choice of who trains.
Var quantize_linear(Var x, Var scale, Var zero_point = {}, std::int64_t axis = 1);
Var dequantize_linear(Var q, Var scale, Var zero_point = {}, std::int64_t axis = 1);

// y, whose derivative by x is taken to be one where `passes` is true and zero elsewhere: what training has
// for the slope of a rounding (the straight-through estimator; Bengio et al., arXiv 1308.3432).
Var straight_through(Var x, Var y, Var passes);

std::span<const Definition> quantization_operators();
std::span<const Definition> quantized_product_operators();

}  // namespace superstep::op
