// One direction of an LSTM over a whole sequence, and back through time.
//
// Weights stay packed for all steps, in panels of 16 units with their four gates side by side, so that the
// activations of a panel follow its product while the sums are in the first-level cache:
//   a step:   gates = W x[t] + R h[t-1] + bias;  i, o, f = sigmoid, g = tanh
//             c[t] = f c[t-1] + i g;  h[t] = o tanh(c[t])
// The part W x is one product for many steps at once, where the rows of x are equally spaced.
// (S. Hochreiter, J. Schmidhuber, Neural Computation 9, 1997, with the forget gate of F. Gers et al., 2000.)
#pragma once

#include <cstdint>
#include <string>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

inline constexpr std::int64_t lstm_panel = 16;  // units

// f32. Row (t, n) of x has `inputs` contiguous elements and starts at t * x_step + n * x_sample; y likewise
// with `hidden`. Initial and last states are [batch][hidden], dense. `hidden` is a multiple of 16.
//
// forward:  Slots: inputs x, w (packed), r (packed), bias [8 hidden] (of w, then of r), h0, c0;
//           outputs y, last h, last c, then, where `keep` is set, gates [steps][batch][4 hidden] and cells
//           [steps][batch][hidden]: what the gradient reads.
// gradient: Slots: inputs x, w (packed), r (packed), h0, c0, y, gates, cells, then dy, dh_last, dc_last as
// far
//           as `has_...` says; outputs dw, dr, dbias (added to; in ONNX's order), dh0, dc0, then dx where
//           `wants_dx`. Overwrites gates.
struct Lstm {
  std::int64_t steps = 1, batch = 1, inputs = 1, hidden = 16;
  std::int64_t x_step = 0, x_sample = 0, y_step = 0, y_sample = 0;
  std::int64_t dx_step = 0, dx_sample = 0, dy_step = 0, dy_sample = 0;  // gradient only
  bool reverse = false;
  bool keep = false;
  bool has_dy = true, has_dh = false, has_dc = false, wants_dx = true;
  // The initial states are zero: their products are left out.
  bool zero_state = false;
  // Products of bf16 pairs: weights are packed as such (lstm_pack.h), rows of x, h and the gates' cotangents
  // rounded ahead of them; sums, states and activations stay f32.
  bool narrow = false;
};

// Why a specification has no kernel; empty when it has one.
std::string fault_of(const Lstm& lstm);

Prepared prepare_lstm(const Lstm& lstm);
Prepared prepare_lstm_gradient(const Lstm& lstm);

}  // namespace superstep::kernels
