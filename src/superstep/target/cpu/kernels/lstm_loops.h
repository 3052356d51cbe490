// The element-wise part of an LSTM. Internal to the kernels.
#pragma once

#include <cstdint>

namespace superstep::kernels {

// 16 units of some samples: gates i, o, f, g lie side by side, 16 elements each.
struct LstmCell {
  std::int64_t samples;
  float* gates;              // before activation; afterwards activated
  std::int64_t gate_stride;  // between samples
  const float* bias;         // four times 16
  const float* c_before;
  float *c, *h;
  std::int64_t c_before_stride, c_stride, h_stride;
};

// The way back: gates (activated) become the cotangents of what they were made of.
struct LstmCellGradient {
  std::int64_t samples;
  float* gates;
  std::int64_t gate_stride;
  const float *c_before, *c;
  const float* dy;  // may be null
  const float* dh;  // from the step after
  float* dc;        // in: from the step after; out: for the step before
  std::int64_t c_before_stride, c_stride, dy_stride, dh_stride, dc_stride;
};

struct LstmLoops {
  void (*cell)(const LstmCell& cell);
  void (*gradient)(const LstmCellGradient& cell);
};
LstmLoops lstm_loops();

}  // namespace superstep::kernels
