// Element-wise arithmetic of two or more inputs, with NumPy's broadcasting. Inputs are of one numeric
// element type; only `pow` takes an exponent of another.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

Var operator+(Var a, Var b);
Var operator-(Var a, Var b);
Var operator*(Var a, Var b);
Var operator/(Var a, Var b);  // integers: toward zero; by zero gives 0
Var pow(Var base, Var exponent);

// With a constant of the other operand's element type.
Var operator+(Var a, double b);
Var operator-(Var a, double b);
Var operator-(double a, Var b);
Var operator*(Var a, double b);
Var operator*(double a, Var b);
Var operator/(Var a, double b);
Var operator/(double a, Var b);
Var pow(Var base, double exponent);

// Of one input or more. Where several inputs are equal, the derivative is shared among them.
Var min(std::span<const Var> inputs);
Var max(std::span<const Var> inputs);
Var sum(std::span<const Var> inputs);
Var mean(std::span<const Var> inputs);
inline Var min(Var a, Var b) { return min(std::vector{a, b}); }
inline Var max(Var a, Var b) { return max(std::vector{a, b}); }

std::span<const Definition> arithmetic_operators();

}  // namespace superstep::op
