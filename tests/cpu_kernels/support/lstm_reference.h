// An LSTM and its gradient in f64, by the formulas of lstm.h; everything dense and in ONNX's order.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/target/cpu/kernels/sequence/lstm.h"

namespace superstep::kernels {

using Numbers = std::vector<double>;

// x [steps][batch][inputs]; w [4 hidden][inputs], r [4 hidden][hidden], bias [8 hidden]; h0, c0
// [batch][hidden].
struct LstmInputs {
  Numbers x, w, r, bias, h0, c0;
};

// y and cells [steps][batch][hidden]; gates, activated, [steps][batch][4 hidden].
struct LstmOutputs {
  Numbers y, cells, gates;
  Numbers last_h, last_c;  // [batch][hidden]
};

LstmOutputs reference_lstm(const Lstm& lstm, const LstmInputs& in);

// Cotangents of y, of the last states; empty: zero.
struct LstmCotangents {
  Numbers dy, dh, dc;
};
struct LstmGradients {
  Numbers dx, dw, dr, dbias, dh0, dc0;
};
LstmGradients reference_lstm_gradient(const Lstm& lstm, const LstmInputs& in, const LstmOutputs& out,
                                      const LstmCotangents& cotangents);

}  // namespace superstep::kernels
