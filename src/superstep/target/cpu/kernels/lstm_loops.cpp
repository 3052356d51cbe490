#include "superstep/target/cpu/kernels/lstm_loops.h"

#include "superstep/target/cpu/kernels/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/lstm_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr std::int64_t units = 16;

void lstm_cell(const LstmCell& s) {
  const float* bias = s.bias;
  for (std::int64_t n = 0; n < s.samples; ++n) {
    float* gates = s.gates + n * s.gate_stride;
    for (std::int64_t u = 0; u < units; u += static_cast<std::int64_t>(lanes)) {
      const V i = sigmoid(hn::Add(load(gates + u), load(bias + u)));
      const V o = sigmoid(hn::Add(load(gates + units + u), load(bias + units + u)));
      const V f = sigmoid(hn::Add(load(gates + 2 * units + u), load(bias + 2 * units + u)));
      const V g = tanh(hn::Add(load(gates + 3 * units + u), load(bias + 3 * units + u)));
      const V c = hn::MulAdd(f, load(s.c_before + n * s.c_before_stride + u), hn::Mul(i, g));
      store(c, s.c + n * s.c_stride + u);
      store(hn::Mul(o, tanh(c)), s.h + n * s.h_stride + u);
      store(i, gates + u);
      store(o, gates + units + u);
      store(f, gates + 2 * units + u);
      store(g, gates + 3 * units + u);
    }
  }
}

// y (1 - y): the derivative of the sigmoid from its value.
HWY_INLINE V sigmoid_slope(V y) { return hn::NegMulAdd(y, y, y); }

void lstm_cell_gradient(const LstmCellGradient& s) {
  const V one = constant(1);
  for (std::int64_t n = 0; n < s.samples; ++n) {
    float* gates = s.gates + n * s.gate_stride;
    for (std::int64_t u = 0; u < units; u += static_cast<std::int64_t>(lanes)) {
      const V i = load(gates + u), o = load(gates + units + u), f = load(gates + 2 * units + u),
              g = load(gates + 3 * units + u);
      const V tanh_c = tanh(load(s.c + n * s.c_stride + u));
      V dh = load(s.dh + n * s.dh_stride + u);
      if (s.dy) dh = hn::Add(dh, load(s.dy + n * s.dy_stride + u));
      float* dc_place = s.dc + n * s.dc_stride + u;
      const V through = hn::Mul(hn::Mul(dh, o), hn::NegMulAdd(tanh_c, tanh_c, one));
      const V dc = hn::Add(load(dc_place), through);
      store(hn::Mul(hn::Mul(dc, g), sigmoid_slope(i)), gates + u);
      store(hn::Mul(hn::Mul(dh, tanh_c), sigmoid_slope(o)), gates + units + u);
      const V c_before = load(s.c_before + n * s.c_before_stride + u);
      store(hn::Mul(hn::Mul(dc, c_before), sigmoid_slope(f)), gates + 2 * units + u);
      store(hn::Mul(hn::Mul(dc, i), hn::NegMulAdd(g, g, one)), gates + 3 * units + u);
      store(hn::Mul(dc, f), dc_place);
    }
  }
}

LstmLoops loops_of_lstm() { return {lstm_cell, lstm_cell_gradient}; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loops_of_lstm);

LstmLoops lstm_loops() { return SUPERSTEP_VECTOR_FUNCTION(loops_of_lstm)(); }

}  // namespace superstep::kernels
#endif
