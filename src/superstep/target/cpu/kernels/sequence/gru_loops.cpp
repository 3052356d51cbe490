#include "superstep/target/cpu/kernels/sequence/gru_loops.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/sequence/gru_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

void gru_cell(const GruCell& s) {
  constexpr std::int64_t units = 16;
  for (std::int64_t n = 0; n < s.samples; ++n) {
    const float* x = s.from_x + n * s.x_stride;
    const float* h = s.from_h ? s.from_h + n * s.h_stride : nullptr;
    for (std::int64_t u = 0; u < units; u += static_cast<std::int64_t>(lanes)) {
      const auto of_state = [&](std::int64_t gate) SUPERSTEP_INLINE_LAMBDA {
        return h ? load(h + gate * units + u) : hn::Zero(f32_tag);
      };
      const auto gate = [&](std::int64_t i) SUPERSTEP_INLINE_LAMBDA {
        return sigmoid(hn::Add(hn::Add(load(x + i * units + u), of_state(i)), load(s.bias + i * units + u)));
      };
      const V z = gate(0), r = gate(1);
      const V of_x = hn::Add(load(x + 2 * units + u), load(s.bias + 2 * units + u));
      const V candidate = tanh(hn::MulAdd(r, hn::Add(of_state(2), load(s.bias + 3 * units + u)), of_x));
      const V before = load(s.before + n * s.before_stride + u);
      store(hn::MulAdd(z, hn::Sub(before, candidate), candidate), s.after + n * s.after_stride + u);
    }
  }
}

GruLoop* loop_of_gru() { return gru_cell; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loop_of_gru);

GruLoop* gru_loop() { return SUPERSTEP_VECTOR_FUNCTION(loop_of_gru)(); }

}  // namespace superstep::kernels
#endif
