#include "superstep/target/cpu/kernels/elementwise/random_normal_loops.h"

#include <algorithm>
#include <cmath>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/elementwise/random_normal_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector_math-inl.h"
#include "superstep/target/cpu/kernels/elementwise/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// (word / 2^9 + 1/2) / 2^23: exact, within (0, 1).
HWY_INLINE V fraction(VU word) {
  const V whole = hn::ConvertTo(f32_tag, hn::BitCast(i32_tag, hn::ShiftRight<9>(word)));
  return hn::MulAdd(whole, constant(0x1p-23f), constant(0x1p-24f));
}

// sqrt(-2 ln u) cos(2 pi (t - quarter)): a quarter of a turn makes a sine of the cosine.
HWY_INLINE V normal(V u, V t, V quarter) {
  const V radius = hn::Sqrt(hn::Mul(constant(-2), hn::Log(f32_tag, u)));
  const V turns = hn::Sub(t, quarter);
  const V nearest = hn::Sub(turns, hn::Round(turns));  // exact; keeps the angle within half a turn
  return hn::Mul(radius, hn::Cos(f32_tag, hn::Mul(nearest, constant(6.28318530717958647692f))));
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void normals(const VU* words, V* numbers) {
  for (std::size_t k = 0; k < dense_vectors; ++k)
    numbers[k] = normal(fraction(words[k & ~std::size_t{1}]), fraction(words[k | 1]),
                        constant(k % 2 == 0 ? 0 : 0.25f));
}
#else
HWY_INLINE void normals(const VU* words, V* numbers) {
  const V quarter = hn::OddEven(constant(0.25f), hn::Zero(f32_tag));
  for (std::size_t k = 0; k < dense_vectors; ++k)
    numbers[k] = normal(fraction(hn::DupEven(words[k])), fraction(hn::DupOdd(words[k])), quarter);
}
#endif

void make_normals(const NormalRun& run) {
  constexpr auto step = static_cast<std::int64_t>(dense_vectors * lanes);
  for (std::int64_t done = 0; done < run.n; done += step) {
    VU words[dense_vectors];
    V numbers[dense_vectors];
    dense_words(static_cast<std::uint32_t>((run.first + done) / 4), run, words);
    normals(words, numbers);
    for (std::size_t k = 0; k < dense_vectors; ++k) {
      const std::int64_t at = done + static_cast<std::int64_t>(k * lanes);
      if (at >= run.n) break;
      store_first(numbers[k], run.numbers + at,
                  static_cast<std::size_t>(std::min(static_cast<std::int64_t>(lanes), run.n - at)));
    }
  }
}

NormalLoop* find_normal_loop() { return make_normals; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(find_normal_loop);

NormalLoop* normal_loop() { return SUPERSTEP_VECTOR_FUNCTION(find_normal_loop)(); }

}  // namespace superstep::kernels
#endif
