#include "superstep/target/cpu/kernels/elementwise/random_mask_loops.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/elementwise/random_mask_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

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

// The numbers of neighbouring elements from block `first` on, as many vectors of them.
#if HWY_TARGET == HWY_SCALAR
constexpr std::size_t dense_vectors = 4;
HWY_INLINE void dense_words(std::uint32_t first, const MaskRun& run, VU* words) {
  const Words block = philox_lanes(hn::Set(u32_tag, first), run);
  for (std::size_t k = 0; k < 4; ++k) words[k] = block.w[k];
}
#else
constexpr std::size_t dense_vectors = 2;
using U64 = hn::Repartition<std::uint64_t, U>;

// A counter in every lane of 64 bits, where the products have room; upper halves that nobody reads are left
// as they come. Lanes 2 i hold block first + i, lanes 2 i + 1 those behind, so that interleaving gives
// neighbours.
HWY_INLINE void dense_words(std::uint32_t first, const MaskRun& run, VU* words) {
  constexpr U64 u64_tag;
  using VU64 = hn::Vec<U64>;
  const auto wide = [&](std::uint32_t value) HWY_ATTR { return hn::Set(u64_tag, value); };
  const auto times = [&](VU64 a, std::uint32_t factor)
                         HWY_ATTR { return hn::MulEven(hn::BitCast(u32_tag, a), hn::Set(u32_tag, factor)); };
  const VU64 lane = hn::Iota(u64_tag, 0);
  const VU64 behind = hn::Mul(hn::And(lane, wide(1)), wide(static_cast<std::uint32_t>(lanes / 4)));
  VU64 c0 = hn::Add(wide(first), hn::Add(hn::ShiftRight<1>(lane), behind)), c1 = wide(run.purpose);
  VU64 c2 = wide(static_cast<std::uint32_t>(run.sample)),
       c3 = wide(static_cast<std::uint32_t>(run.sample >> 32));
  auto k0 = static_cast<std::uint32_t>(run.seed), k1 = static_cast<std::uint32_t>(run.seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const VU64 a = times(c0, 0xD2511F53u), b = times(c2, 0xCD9E8D57u);
    c0 = hn::Xor3(hn::ShiftRight<32>(b), c1, wide(k0));
    c2 = hn::Xor3(hn::ShiftRight<32>(a), c3, wide(k1));
    c1 = b;
    c3 = a;
  }
  const auto pair = [&](VU64 even, VU64 odd)
                        HWY_ATTR { return hn::Or(hn::And(even, wide(0xffffffffu)), hn::ShiftLeft<32>(odd)); };
  const VU64 front = pair(c0, c1), back = pair(c2, c3);
  words[0] = hn::BitCast(u32_tag, hn::InterleaveLower(u64_tag, front, back));
  words[1] = hn::BitCast(u32_tag, hn::InterleaveUpper(u64_tag, front, back));
}
#endif

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
