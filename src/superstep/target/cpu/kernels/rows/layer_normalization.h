// Layer normalisation over contiguous rows, and its gradient.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

// `rows` rows of `length` contiguous f32; row r of a tensor starts at r * its stride (0: length).
//
// forward:  y = (x - mean) / sqrt(variance + epsilon) * scale [+ bias]
//           Slots: inputs x, scale, bias where `bias` is set; outputs y (y may be x).
// gradient: from dy and x what x, scale and bias get. Slots: inputs dy, x, scale; outputs dx, dscale, dbias
//           (dx may be dy or x).
struct LayerNormalization {
  std::int64_t rows = 1, length = 1;
  std::int64_t x_stride = 0, y_stride = 0, dx_stride = 0;  // y_stride is dy's in the gradient
  float epsilon = 1e-5f;
  bool bias = true;
};

Prepared prepare_layer_normalization(const LayerNormalization& normalization);
Prepared prepare_layer_normalization_gradient(const LayerNormalization& normalization);

}  // namespace superstep::kernels
