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

HWY_INLINE V radius(V u) { return hn::Sqrt(hn::Mul(constant(-2), hn::Log(f32_tag, u))); }

struct Turn {
  V cosine, sine;
};

// Of t turns, t within (0, 1) and a multiple of 2^-24: what is beyond the nearest quarter is exact.
// Polynomials for an eighth of a turn to both sides (S. Moshier, Cephes, sinf.c: errors below 2^-24).
HWY_INLINE Turn turned(V t) {
  const V quarters = hn::Mul(t, constant(4)), nearest = hn::Round(quarters);
  const V a = hn::Mul(hn::Sub(quarters, nearest), constant(1.57079632679489661923f));
  const V z = hn::Mul(a, a);
  V s = hn::MulAdd(constant(-1.9515295891e-4f), z, constant(8.3321608736e-3f));
  s = hn::MulAdd(s, z, constant(-1.6666654611e-1f));
  s = hn::MulAdd(hn::Mul(s, z), a, a);
  V c = hn::MulAdd(constant(2.443315711809948e-5f), z, constant(-1.388731625493765e-3f));
  c = hn::MulAdd(c, z, constant(4.166664568298827e-2f));
  c = hn::MulAdd(hn::Mul(c, z), z, hn::MulAdd(z, constant(-0.5f), constant(1)));
  // A quarter makes a sine of the cosine and a cosine less than zero of the sine.
  const VI quarter = hn::ConvertTo(i32_tag, nearest), one = hn::Set(i32_tag, 1);
  const auto odd = hn::RebindMask(f32_tag, hn::Eq(hn::And(quarter, one), one));
  const auto sign = [](VI quarters_done) HWY_ATTR {
    return hn::BitCast(f32_tag, hn::ShiftLeft<30>(hn::And(quarters_done, hn::Set(i32_tag, 2))));
  };
  return {hn::Xor(hn::IfThenElse(odd, s, c), sign(hn::Add(quarter, one))),
          hn::Xor(hn::IfThenElse(odd, c, s), sign(quarter))};
}

// Two vectors of words to two of numbers: each pair of words, side by side, makes a pair of numbers.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void normals(const VU* words, V* numbers) {
  const V length = radius(fraction(words[0]));
  const Turn turn = turned(fraction(words[1]));
  numbers[0] = hn::Mul(length, turn.cosine);
  numbers[1] = hn::Mul(length, turn.sine);
}
#else
HWY_INLINE void normals(const VU* words, V* numbers) {
  // Within each block of four lanes: the first words of four pairs, and their second ones.
  const VU low = hn::InterleaveLower(u32_tag, words[0], words[1]),
           high = hn::InterleaveUpper(u32_tag, words[0], words[1]);
  const V length = radius(fraction(hn::InterleaveLower(u32_tag, low, high)));
  const Turn turn = turned(fraction(hn::InterleaveUpper(u32_tag, low, high)));
  const V even = hn::Mul(length, turn.cosine), odd = hn::Mul(length, turn.sine);
  numbers[0] = hn::InterleaveLower(f32_tag, even, odd);
  numbers[1] = hn::InterleaveUpper(f32_tag, even, odd);
}
#endif

// Numbers from the block that holds number `done` of the run on.
constexpr std::size_t chains = 2, vectors = chains * dense_vectors;
HWY_INLINE void next_normals(const NormalRun& run, std::int64_t done, V* numbers) {
  VU words[vectors];
  dense_words<chains>(static_cast<std::uint32_t>((run.first + done) / 4), run, words);
  for (std::size_t k = 0; k < vectors; k += 2) normals(words + k, numbers + k);
}

void make_normals(const NormalRun& run) {
  constexpr auto step = static_cast<std::int64_t>(vectors * lanes);
  V numbers[vectors];
  std::int64_t done = 0;
  for (; done + step <= run.n; done += step) {
    next_normals(run, done, numbers);
    for (std::size_t k = 0; k < vectors; ++k)
      store(numbers[k], run.numbers + done + static_cast<std::int64_t>(k * lanes));
  }
  if (done == run.n) return;
  next_normals(run, done, numbers);
  float last[vectors * lanes];
  for (std::size_t k = 0; k < vectors; ++k) store(numbers[k], last + k * lanes);
  std::copy_n(last, run.n - done, run.numbers + done);
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
