// Factors of symmetric positive definite matrices, and systems of equations with triangular ones, in stacks
// [..., n, n].
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// The lower triangular L with L L^T = A, zero above the diagonal. Of A [..., n, n] only the lower triangle is
// read. A matrix that is not positive definite has a factor of NaN.
Var cholesky(Var a);

// The X with L X = B, or with `transposed` L^T X = B: L [..., n, n], of which only the lower triangle is
// read, B
// [..., n, m] with the same leading axes. A diagonal with a zero gives infinities and NaN, as a division
// does.
Var triangular_solve(Var l, Var b, bool transposed = false);

// 2 sum log L_ii over the last two axes: log det A of A = L L^T; [...].
Var log_determinant_of_factor(Var l);

std::span<const Definition> cholesky_operators();

}  // namespace superstep::op
