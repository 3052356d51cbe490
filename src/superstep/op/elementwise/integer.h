// Remainders, and operations on the bits of integers, with NumPy's broadcasting.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// The remainder of a / b with the sign of b (integers), or with the sign of a as std::fmod, which floating
// types need. Of a division by zero: 0 for integers, NaN for floating types.
Var mod(Var a, Var b, bool like_fmod = false);
Var bit_shift(Var a, Var b, const std::string& direction);  // "LEFT" or "RIGHT"
Var bitwise_and(Var a, Var b);
Var bitwise_or(Var a, Var b);
Var bitwise_xor(Var a, Var b);
Var bitwise_not(Var a);

std::span<const Definition> integer_operators();

}  // namespace superstep::op
