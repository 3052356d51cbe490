// Sums of products over labelled axes.
#pragma once

#include "superstep/op/definition.h"

namespace superstep::op {

// Einstein's summation in NumPy's notation: "bij,bjk->bik"; "..." stands for axes that broadcast; without an
// arrow the result has the labels that appear once, in alphabetical order. A label twice in one operand
// takes its diagonal. Any numeric type.
Var einsum(const std::string& equation, std::span<const Var> operands);

std::span<const Definition> einsum_operators();

}  // namespace superstep::op
