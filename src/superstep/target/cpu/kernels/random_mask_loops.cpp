#include "superstep/target/cpu/kernels/random_mask_loops.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/random_mask_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto width = static_cast<std::int64_t>(lanes);

struct Wide {
  VU low, high;
};

// The 64-bit products of 32-bit lanes.
HWY_INLINE Wide multiply(VU a, std::uint32_t factor) {
#if HWY_TARGET == HWY_SCALAR
  const std::uint64_t product = std::uint64_t{hn::GetLane(a)} * factor;
  return {hn::Set(u32_tag, static_cast<std::uint32_t>(product)),
          hn::Set(u32_tag, static_cast<std::uint32_t>(product >> 32))};
#else
  const hn::Repartition<std::uint64_t, U> u64_tag;
  const VU b = hn::Set(u32_tag, factor);
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(u32_tag, hn::ShiftRight<32>(hn::BitCast(u64_tag, a))), b);
  return {hn::OddEven(hn::BitCast(u32_tag, hn::ShiftLeft<32>(odd)), hn::BitCast(u32_tag, even)),
          hn::OddEven(hn::BitCast(u32_tag, odd), hn::BitCast(u32_tag, hn::ShiftRight<32>(even)))};
#endif
}

struct Words {
  VU w[4];
};

// Philox4x32-10 (see base/random.h) of a counter a lane that differ in their first word alone.
HWY_INLINE Words philox_lanes(VU block, const MaskRun& run) {
  VU c0 = block, c1 = hn::Set(u32_tag, run.purpose);
  VU c2 = hn::Set(u32_tag, static_cast<std::uint32_t>(run.sample));
  VU c3 = hn::Set(u32_tag, static_cast<std::uint32_t>(run.sample >> 32));
  auto k0 = static_cast<std::uint32_t>(run.seed), k1 = static_cast<std::uint32_t>(run.seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const Wide a = multiply(c0, 0xD2511F53u), b = multiply(c2, 0xCD9E8D57u);
    c0 = hn::Xor(hn::Xor(b.high, c1), hn::Set(u32_tag, k0));
    c1 = b.low;
    c2 = hn::Xor(hn::Xor(a.high, c3), hn::Set(u32_tag, k1));
    c3 = a.low;
  }
  return {{c0, c1, c2, c3}};
}

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
  const std::int64_t skip = run.first % 4;
  for (std::int64_t done = -skip; done < run.n; done += 4 * width) {
    const auto first_block = static_cast<std::uint32_t>((run.first + done) / 4);
    const Words words = philox_lanes(hn::Iota(u32_tag, first_block), run);
    const V kept[4] = {kept_or_zero(words.w[0], run), kept_or_zero(words.w[1], run),
                       kept_or_zero(words.w[2], run), kept_or_zero(words.w[3], run)};
    // Lane l of word w is element 4 l + w.
    alignas(64) float values[4 * lanes];
    if (done >= 0 && done + 4 * width <= run.n) {
      if constexpr (std::is_same_v<T, float>) {
        hn::StoreInterleaved4(kept[0], kept[1], kept[2], kept[3], f32_tag, mask + done);
      } else {
        hn::StoreInterleaved4(kept[0], kept[1], kept[2], kept[3], f32_tag, values);
        for (std::size_t k = 0; k < 4; ++k) store(load(values + k * lanes), mask + done + k * lanes);
      }
      continue;
    }
    hn::StoreInterleaved4(kept[0], kept[1], kept[2], kept[3], f32_tag, values);
    const std::int64_t begin = std::max<std::int64_t>(done, 0), end = std::min(done + 4 * width, run.n);
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
