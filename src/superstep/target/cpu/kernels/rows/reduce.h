// Reductions of a matrix along one of its axes.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

enum class Reduction : std::uint8_t { sum, mean, max, min, sum_of_squares, product };

// x is [outer][reduced][inner] with inner contiguous: element (o, r, i) at o * outer_stride +
// r * reduced_stride + i; y is dense [outer][inner]. inner = 1 with reduced_stride = 1 reduces contiguous
// rows; outer = 1 reduces over leading axes. x f32 or bf16, y f32; or both f64, or of one type of 32 or 64
// bits of whole numbers, which wrap around. Sums are made in a fixed order of partial sums (error grows with
// the square root of the partial length, not with `reduced`). Slots: inputs x; outputs y.
struct Reduce {
  Reduction reduction = Reduction::sum;
  std::int64_t outer = 1, reduced = 1, inner = 1;
  std::int64_t outer_stride = 0, reduced_stride = 0;  // 0: dense
  ElementType type = ElementType::f32;                // of x
  bool accumulate = false;                            // y = y (reduction) result; mean: refused
};

Prepared prepare(const Reduce& reduce);

}  // namespace superstep::kernels
