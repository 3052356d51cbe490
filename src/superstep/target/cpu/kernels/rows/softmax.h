// Softmax and log-softmax over contiguous rows, and their gradients.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// `rows` rows of `length` contiguous elements; row r of a tensor starts at r * its stride. Types f32 or bf16,
// computed in f32. A row of minus infinities gives NaN, as the definition says.
//
// forward:  y = softmax(scale * x) or log of it. Slots: inputs x; outputs y (y may be x).
// gradient: from the forward's output y and dy:
//             softmax:      dx = scale * y * (dy - sum(y * dy))
//             log-softmax:  dx = scale * (dy - exp(y) * sum(dy))
//           Slots: inputs y, dy; outputs dx (dx may be dy or y).
struct Softmax {
  std::int64_t rows = 1, length = 1;
  std::int64_t x_stride = 0, y_stride = 0;  // of x and y (forward) or of dx and y (gradient); 0: length
  std::int64_t dy_stride = 0;               // gradient only; 0: length
  ElementType x_type = ElementType::f32;    // of x and dx
  ElementType y_type = ElementType::f32;    // of y
  ElementType dy_type = ElementType::f32;
  float scale = 1;
  bool logarithm = false;
};

Prepared prepare_softmax(const Softmax& softmax);
Prepared prepare_softmax_gradient(const Softmax& softmax);

}  // namespace superstep::kernels
