// Element-wise functions of one input. Floating-point element types unless said otherwise.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

Var operator-(Var x);  // any signed type
Var abs(Var x);        // any numeric type
Var sign(Var x);       // any numeric type; -1, 0 or 1
Var exp(Var x);
Var log(Var x);
Var sqrt(Var x);
Var reciprocal(Var x);
Var erf(Var x);
Var floor(Var x);
Var ceil(Var x);
Var round(Var x);  // halves to even
Var identity(Var x);
// The same value, marked as one of a whole batch: a sum or mean over samples whose parts need not average to
// it, so that nobody divides the batch (op/batch/elementwise.cpp).
Var of_whole_batch(Var x);

std::span<const Definition> unary_operators();

}  // namespace superstep::op
