// Determinants of square matrices in the last two axes.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

Var determinant(Var x);  // [..., n, n] -> [...]

std::span<const Definition> determinant_operators();

}  // namespace superstep::op
