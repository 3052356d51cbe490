// Batched products of strided matrices in f64: c(b, i, j) = sum over k of a(b, i, k) b(b, k, j), and a row
// added. Sums are f64, in the order of k, so that their bits do not depend on where in c they stand.
//
// Slots: inputs a, b, and with `bias` a row of c's columns; outputs c, which must not overlap a or b.
#pragma once

#include "superstep/target/cpu/kernels/product/matmul.h"

namespace superstep::kernels {

struct WideProduct {
  Matmul matmul;  // of f64; without epilogue
  double alpha = 1;
  bool bias = false;  // c(b, i, j) += bias[j]
};

// Refuses where c has no unit stride, and a bias across c's unit-stride dimension.
Prepared prepare(const WideProduct& product);

}  // namespace superstep::kernels
