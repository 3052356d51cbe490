// Circular and hyperbolic functions, element by element on floating-point types; angles in radians.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

Var sin(Var x);
Var cos(Var x);
Var tan(Var x);
Var asin(Var x);
Var acos(Var x);
Var atan(Var x);
Var sinh(Var x);
Var cosh(Var x);
Var asinh(Var x);
Var acosh(Var x);
Var atanh(Var x);

std::span<const Definition> trigonometric_operators();

}  // namespace superstep::op
