// What the definitions of optimisers share: checks of their inputs and parts of their formulas.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// Inputs 0 and 1 are the parameter and its gradient, `rate` is a scalar.
void check_parameter(const InferContext& context, std::size_t rate);
// Of the parameter's type.
void check_buffer(const InferContext& context, std::size_t input, const char* name);

Var scalar_like(Var value, Var like);

// t = step + 1, in f64.
Var count_of(Var step);
// 1 - beta^t. In f64: in f32 the difference of two numbers near 1 would keep four digits of the first steps.
Var correction(Var t, double beta, ElementType element);

// The gradient as wide as the parameter, with the decay's share.
Var decayed_gradient(const DerivativeContext& context, double weight_decay);

}  // namespace superstep::op
