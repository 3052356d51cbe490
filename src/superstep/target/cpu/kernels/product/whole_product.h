// Products of matrices of whole numbers of any kind: exact, and beyond the range of the result's type wrapped
// around, as sums of that type are.
#pragma once

#include "superstep/target/cpu/kernels/product/matmul.h"

namespace superstep::kernels {

// c = (a - a's zero point) (b - b's). Types of a and b: u8 or i8 with c i32; or all three i32, u32, i64 or
// u64. Slots: inputs a, b, and where they are there a's zero points and b's, of the types of a and b: one, or
// one a row of a and one a column of b. Outputs c.
struct WholeProduct {
  enum class ZeroPoint : std::uint8_t { none, one, each };
  Matmul matmul;  // without epilogue
  ZeroPoint of_rows = ZeroPoint::none, of_columns = ZeroPoint::none;
};

// Refuses where c has no unit stride along its columns.
Prepared prepare(const WholeProduct& product);

}  // namespace superstep::kernels
