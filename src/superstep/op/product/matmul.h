// Matrix products.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// NumPy's matmul: [..., m, k] x [..., k, n] with leading axes broadcast; a vector on the left is a row, on
// the right a column, and its axis is gone from the result. Any numeric type.
Var matmul(Var a, Var b);

// a' x b' (with `transpose_a` a' = transpose of a) of two matrices, plus c broadcast to the result where it
// is valid, each with its factor: alpha a' b' + beta c.
struct GemmAttributes {
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 1;
};
Var gemm(Var a, Var b, Var c = {}, const GemmAttributes& attributes = {});

std::span<const Definition> matmul_operators();

}  // namespace superstep::op
