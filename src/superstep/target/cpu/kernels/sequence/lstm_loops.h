// The element-wise part of an LSTM. Internal to the kernels.
#pragma once

#include <cstdint>

#include "superstep/base/element_type.h"

namespace superstep::kernels {

// 16 units of some samples: gates i, o, f, g lie side by side, 16 elements each.
struct LstmCell {
  std::int64_t samples;
  float* gates;              // before activation; afterwards activated, where they are kept
  std::int64_t gate_stride;  // between samples
  const float* bias;         // four times 16
  const float* c_before;
  float *c, *h;
  std::int64_t c_before_stride, c_stride, h_stride;
  bool keep;
  bf16* narrow_h;  // h once more, rounded; may be null
  std::int64_t narrow_h_stride;
};

// The same of one sample behind its product, gates + R h, which stays in registers.
struct LstmStep {
  LstmCell cell;
  const void *r, *h;   // a panel of R and the state before: f32, or bf16 in pairs
  std::int64_t depth;  // even
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
  bf16* narrow_gates;  // the cotangents once more, rounded, at gate_stride; may be null
};

struct LstmLoops {
  void (*cell)(const LstmCell& cell);
  void (*step)(const LstmStep& step);         // null where it has no registers enough
  void (*narrow_step)(const LstmStep& step);  // likewise
  void (*gradient)(const LstmCellGradient& cell);
};
LstmLoops lstm_loops();

}  // namespace superstep::kernels
