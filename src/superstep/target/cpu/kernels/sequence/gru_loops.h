// The element-wise part of a GRU. Internal to the kernels.
#pragma once

#include <cstdint>

namespace superstep::kernels {

// 16 units of some samples: gates z, r, g lie side by side, 16 elements each.
struct GruCell {
  std::int64_t samples;
  const float *from_x, *from_h;     // sums over x and over the state; from_h null: the state is zero
  std::int64_t x_stride, h_stride;  // of these, between samples
  const float* bias;                // 16 each: of z, of r, of g with x, of g with the state
  const float* before;
  float* after;
  std::int64_t before_stride, after_stride;
};
using GruLoop = void(const GruCell& cell);
GruLoop* gru_loop();

}  // namespace superstep::kernels
