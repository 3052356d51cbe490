// Comparisons, logic on bool, and choice, element by element with NumPy's broadcasting.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

Var equal(Var a, Var b);
Var greater(Var a, Var b);
Var greater_or_equal(Var a, Var b);
Var less(Var a, Var b);
Var less_or_equal(Var a, Var b);
Var logical_and(Var a, Var b);
Var logical_or(Var a, Var b);
Var logical_xor(Var a, Var b);
Var logical_not(Var a);
Var is_nan(Var x);

// a where `condition` is true, b elsewhere. The derivative of the side that was not chosen is exactly zero,
// whatever infinities it holds.
Var where(Var condition, Var a, Var b);

std::span<const Definition> logic_operators();

}  // namespace superstep::op
