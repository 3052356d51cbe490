// Sums of products over labelled axes.
#pragma once

#include <string>
#include <vector>

#include "superstep/op/core/definition.h"

namespace superstep::op {

// Einstein's summation in NumPy's notation: "bij,bjk->bik"; "..." stands for axes that broadcast; without an
// arrow the result has the labels that appear once, in alphabetical order. A label twice in one operand
// takes its diagonal. Any numeric type.
Var einsum(const std::string& equation, std::span<const Var> operands);

// The labels of every operand's axes and of the result's. The axes that "..." stands for are labelled '0',
// '1', ... counted from the last, so that they broadcast. Throws Error when the equation does not fit.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};
Equation parse_equation(const Attributes& attributes, const std::vector<Shape>& shapes);

// By products of two matrices each, the smallest results first; by products of elements where nothing is
// summed.
std::vector<Var> decompose_einsum(const DerivativeContext& context);

std::span<const Definition> einsum_operators();

}  // namespace superstep::op
