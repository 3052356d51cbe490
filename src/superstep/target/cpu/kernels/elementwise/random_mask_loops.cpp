#include "superstep/target/cpu/kernels/elementwise/random_mask_loops.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/elementwise/random_mask_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/elementwise/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto width = static_cast<std::int64_t>(lanes);

HWY_INLINE V kept_or_zero(VU word, const MaskRun& run) {
  const VI flip = hn::Set(i32_tag, INT32_MIN);  // makes the comparison of signed lanes one of unsigned ones
  const VI number = hn::Xor(hn::BitCast(i32_tag, word), flip);
  const VI threshold = hn::Xor(hn::Set(i32_tag, static_cast<std::int32_t>(run.threshold)), flip);
  return hn::IfThenElseZero(hn::RebindMask(f32_tag, hn::Lt(number, threshold)), constant(run.kept));
}

// Any step: each lane makes its block and takes one word of it.
template <class T>
void spread_mask(const MaskRun& run, T* mask) {
  for (std::int64_t i = 0; i < run.n; i += width) {
    std::uint32_t blocks[lanes], picks[lanes];
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t element = run.first + (i + static_cast<std::int64_t>(lane)) * run.step;
      blocks[lane] = static_cast<std::uint32_t>(element / 4);
      picks[lane] = static_cast<std::uint32_t>(element % 4);
    }
    const Words words = philox_lanes(hn::LoadU(u32_tag, blocks), run);
    const VU pick = hn::LoadU(u32_tag, picks);
    VU word = words.w[0];
    for (std::uint32_t k = 1; k < 4; ++k)
      word = hn::IfThenElse(hn::Eq(pick, hn::Set(u32_tag, k)), words.w[k], word);
    store_first(kept_or_zero(word, run), mask + i, static_cast<std::size_t>(std::min(width, run.n - i)));
  }
}

// Neighbouring numbers: all four words of every block are used.
template <class T>
void dense_mask(const MaskRun& run, T* mask) {
  constexpr auto step = static_cast<std::int64_t>(dense_vectors * lanes);
  for (std::int64_t done = -(run.first % 4); done < run.n; done += step) {
    VU words[dense_vectors];
    dense_words(static_cast<std::uint32_t>((run.first + done) / 4), run, words);
    if (done >= 0 && done + step <= run.n) {
      for (std::size_t k = 0; k < dense_vectors; ++k)
        store(kept_or_zero(words[k], run), mask + done + static_cast<std::int64_t>(k * lanes));
      continue;
    }
    float values[dense_vectors * lanes];
    for (std::size_t k = 0; k < dense_vectors; ++k) store(kept_or_zero(words[k], run), values + k * lanes);
    const std::int64_t begin = std::max<std::int64_t>(done, 0), end = std::min(done + step, run.n);
    for (std::int64_t i = begin; i < end; ++i) mask[i] = static_cast<T>(values[i - done]);
  }
}

template <class T>
void make_mask(const MaskRun& run) {
  T* mask = static_cast<T*>(run.mask);
  // The block numbers of short rows would leave most lanes of a dense run idle.
  if (run.step == 1 && run.n > 2 * width)
    dense_mask(run, mask);
  else
    spread_mask(run, mask);
}

MaskLoop* loop_of(ElementType type) {
  switch (type) {
    case ElementType::u8: return make_mask<std::uint8_t>;
    case ElementType::f32: return make_mask<float>;
    case ElementType::bf16: return make_mask<bf16>;
    default: return nullptr;
  }
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loop_of);

MaskLoop* mask_loop(ElementType type) { return SUPERSTEP_VECTOR_FUNCTION(loop_of)(type); }

}  // namespace superstep::kernels
#endif
