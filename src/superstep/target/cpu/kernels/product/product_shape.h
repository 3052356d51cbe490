// The shape of a batch-reduce product (batch_reduce.h). Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// C [+]= sum over i of A_i * B_i,   A_i: m x k with m contiguous, B_i: k x n, C: m x n with m contiguous.
struct ProductShape {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t a_stride = 1;                    // between columns of A (k to k + 1)
  std::int64_t b_k_stride = 1, b_n_stride = 1;  // of B
  std::int64_t c_stride = 1;                    // between columns of C
  bool accumulate = false;                      // C += ...
  // bf16 A is stored in pairs, [k/2][m][2] with a_stride pairs a row of [m][2], when `pairs` is set; B then
  // has k contiguous, or is in pairs too (`b_pairs`, portable alone): [k/2][n][2], its strides counting
  // pairs. C is f32. u8: the type of B; A is i8 in quads, [k/4][m][4] with a_stride quads a row of [m][4]; k
  // is a multiple of 4 and contiguous in B; C is i32, behind the float pointers of a call.
  ElementType type = ElementType::f32;
  bool pairs = false, b_pairs = false;
  std::int64_t a_ahead = 0;  // dot alone: so many elements behind what is read of A lies what is read next
};

}  // namespace superstep::kernels
