// Softmax and log-softmax down columns: along an axis whose elements do not lie side by side, of many columns
// that do.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// `columns` columns of `length` elements; element i of column c lies at i * step + c. Types f32 or bf16,
// computed in f32. A column of minus infinities gives NaN, as the definition says.
// Slots: inputs x; outputs y (y may be x).
struct SoftmaxColumns {
  std::int64_t columns = 1, length = 1;
  std::int64_t x_step = 1, y_step = 1;
  ElementType x_type = ElementType::f32, y_type = ElementType::f32;
  bool logarithm = false;
};

Prepared prepare(const SoftmaxColumns& softmax);

}  // namespace superstep::kernels
