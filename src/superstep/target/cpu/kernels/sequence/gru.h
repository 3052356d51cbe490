// One direction of a GRU over a whole sequence, whose reset gate follows the product with the state.
//
// Weights stay packed for all steps, in panels of 16 units with their three gates side by side, so that the
// activations of a panel follow its product while the sums are in the first-level cache:
//   a step:   z, r = sigmoid(W x[t] + R h[t-1] + bias);  g = tanh(Wg x[t] + bias + r (Rg h[t-1] + bias))
//             h[t] = (1 - z) g + z h[t-1]
// The part W x is one product for many steps at once.
// (K. Cho et al., arXiv 1406.1078; the reset gate behind the product as in ONNX's linear_before_reset.)
#pragma once

#include <cstdint>
#include <string>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

inline constexpr std::int64_t gru_panel = 16;  // units

// f32. Rows (t, n) of x have `inputs` contiguous elements and are x_row apart, the samples of a step one
// after the other; row (t, n) of y has `hidden` and starts at t * y_step + n * y_sample. States are
// [batch][hidden], dense. `hidden` is a multiple of 16.
// Slots: inputs x, w (packed), r (packed), bias [6 hidden] (of w, then of r; z, r, g), h0; outputs y, last h.
struct Gru {
  std::int64_t steps = 1, batch = 1, inputs = 1, hidden = gru_panel;
  std::int64_t x_row = 0, y_step = 0, y_sample = 0;
  bool reverse = false;
  bool zero_state = false;  // h0 is zero: its product is left out
};

// Why a specification has no kernel; empty when it has one.
std::string fault_of(const Gru& gru);
Prepared prepare_gru(const Gru& gru);

// Weights [directions][3 hidden][columns], W or R, as [direction][panel of 16 units][column][gate][16].
Prepared prepare_gru_pack(std::int64_t directions, std::int64_t hidden, std::int64_t columns);

}  // namespace superstep::kernels
