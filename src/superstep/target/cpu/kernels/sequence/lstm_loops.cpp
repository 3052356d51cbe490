#include "superstep/target/cpu/kernels/sequence/lstm_loops.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/sequence/lstm_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr std::int64_t units = 16;

struct Gates {
  V i, o, f, g;  // before activation
};

// `lanes` units of sample n, from unit u of the panel on.
HWY_INLINE void finish_cell(const LstmCell& s, std::int64_t n, std::int64_t u, const Gates& sum) {
  const V i = sigmoid(hn::Add(sum.i, load(s.bias + u)));
  const V o = sigmoid(hn::Add(sum.o, load(s.bias + units + u)));
  const V f = sigmoid(hn::Add(sum.f, load(s.bias + 2 * units + u)));
  const V g = tanh(hn::Add(sum.g, load(s.bias + 3 * units + u)));
  const V c = hn::MulAdd(f, load(s.c_before + n * s.c_before_stride + u), hn::Mul(i, g));
  store(c, s.c + n * s.c_stride + u);
  const V h = hn::Mul(o, tanh(c));
  store(h, s.h + n * s.h_stride + u);
  if (s.narrow_h) store(h, s.narrow_h + n * s.narrow_h_stride + u);
  if (!s.keep) return;
  float* gates = s.gates + n * s.gate_stride + u;
  store(i, gates);
  store(o, gates + units);
  store(f, gates + 2 * units);
  store(g, gates + 3 * units);
}

void lstm_cell(const LstmCell& s) {
  for (std::int64_t n = 0; n < s.samples; ++n) {
    const float* gates = s.gates + n * s.gate_stride;
    for (std::int64_t u = 0; u < units; u += static_cast<std::int64_t>(lanes))
      finish_cell(s, n, u,
                  {load(gates + u), load(gates + units + u), load(gates + 2 * units + u),
                   load(gates + 3 * units + u)});
  }
}

#if HWY_TARGET == HWY_SCALAR
constexpr auto lstm_step = nullptr, narrow_lstm_step = nullptr;
#else
constexpr std::size_t vectors = 4 * static_cast<std::size_t>(units) / lanes;  // of a panel's gates

// Sums over even and odd depths apart, so that there are 8 of them at least: more than one multiply-add
// after the other takes.
struct PanelSums {
  static constexpr std::size_t apart = vectors < 8 ? 2 : 1;
  V sum[apart][vectors];

  explicit HWY_INLINE PanelSums(const float* gates) {
    unrolled<vectors>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      sum[0][i] = load(gates + i * lanes);
      if constexpr (apart > 1) sum[apart - 1][i] = hn::Zero(f32_tag);
    });
  }
  HWY_INLINE void finish(const LstmCell& s) {
    if constexpr (apart > 1)
      unrolled<vectors>([&](auto i) SUPERSTEP_INLINE_LAMBDA { sum[0][i] = hn::Add(sum[0][i], sum[1][i]); });
    constexpr std::size_t gate = vectors / 4;
    unrolled<gate>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      finish_cell(s, 0, static_cast<std::int64_t>(i * lanes),
                  {sum[0][i], sum[0][gate + i], sum[0][2 * gate + i], sum[0][3 * gate + i]});
    });
  }
};

void lstm_step(const LstmStep& s) {
  constexpr std::size_t apart = PanelSums::apart;
  PanelSums sums(s.cell.gates);
  const auto* r = static_cast<const float*>(s.r);
  const auto* h = static_cast<const float*>(s.h);
  for (std::int64_t k = 0; k < s.depth; k += static_cast<std::int64_t>(apart), r += apart * vectors * lanes)
    unrolled<apart>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
      const V value = constant(h[k + static_cast<std::int64_t>(j)]);
      unrolled<vectors>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
        sums.sum[j][i] = hn::MulAdd(value, load(r + (j * vectors + i) * lanes), sums.sum[j][i]);
      });
    });
  sums.finish(s.cell);
}

#if HWY_TARGET == HWY_AVX3
// A function of its own since an operand of asm does not count as a use that a generic lambda captures
// (clang).
HWY_INLINE void add_pairs(V& sum, V value, V weights) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(value.raw), "v"(weights.raw));
}

// Two pairs of depths a round; `depth` is a multiple of 4.
void narrow_lstm_step(const LstmStep& s) {
  PanelSums sums(s.cell.gates);
  const auto* r = static_cast<const bf16*>(s.r);
  const auto* h = static_cast<const bf16*>(s.h);
  for (std::int64_t k = 0; k < s.depth; k += 4, r += 4 * vectors * lanes)
    unrolled<2>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
      std::uint32_t pair;
      std::memcpy(&pair, h + k + 2 * j, sizeof pair);
      const V value = hn::BitCast(f32_tag, hn::Set(u32_tag, pair));
      unrolled<vectors>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
        const V weights = hn::BitCast(
            f32_tag,
            hn::LoadU(u32_tag, reinterpret_cast<const std::uint32_t*>(r + 2 * (j * vectors + i) * lanes)));
        add_pairs(sums.sum[j][i], value, weights);
      });
    });
  sums.finish(s.cell);
}
#else
constexpr auto narrow_lstm_step = nullptr;
#endif
#endif

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
      const V c_before = load(s.c_before + n * s.c_before_stride + u);
      const V cotangents[] = {hn::Mul(hn::Mul(dc, g), sigmoid_slope(i)),
                              hn::Mul(hn::Mul(dh, tanh_c), sigmoid_slope(o)),
                              hn::Mul(hn::Mul(dc, c_before), sigmoid_slope(f)),
                              hn::Mul(hn::Mul(dc, i), hn::NegMulAdd(g, g, one))};
      unrolled<4>([&](auto gate) SUPERSTEP_INLINE_LAMBDA {
        store(cotangents[gate], gates + gate * units + u);
        if (s.narrow_gates) store(cotangents[gate], s.narrow_gates + n * s.gate_stride + gate * units + u);
      });
      store(hn::Mul(dc, f), dc_place);
    }
  }
}

LstmLoops loops_of_lstm() { return {lstm_cell, lstm_step, narrow_lstm_step, lstm_cell_gradient}; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loops_of_lstm);

LstmLoops lstm_loops() { return SUPERSTEP_VECTOR_FUNCTION(loops_of_lstm)(); }

}  // namespace superstep::kernels
#endif
