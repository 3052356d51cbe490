// Words of RandomStream (base/random.h) over vectors, for each instruction set.
#if defined(SUPERSTEP_PHILOX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SUPERSTEP_PHILOX_INL_H
#undef SUPERSTEP_PHILOX_INL_H
#else
#define SUPERSTEP_PHILOX_INL_H
#endif

#include "superstep/target/cpu/kernels/core/vector-inl.h"
#include "superstep/target/cpu/kernels/elementwise/word_address.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

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
HWY_INLINE Words philox_lanes(VU block, const WordAddress& run) {
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

// The numbers of neighbouring elements from block `first` on, as many vectors of them. Rounds wait for each
// other's products: `chains` of them at a time keep the multipliers busy.
#if HWY_TARGET == HWY_SCALAR
constexpr std::size_t dense_vectors = 4;
template <std::size_t chains = 1>
HWY_INLINE void dense_words(std::uint32_t first, const WordAddress& run, VU* words) {
  for (std::size_t j = 0; j < chains; ++j) {
    const Words block = philox_lanes(hn::Set(u32_tag, first + static_cast<std::uint32_t>(j)), run);
    for (std::size_t k = 0; k < 4; ++k) words[4 * j + k] = block.w[k];
  }
}
#else
constexpr std::size_t dense_vectors = 2;
using U64 = hn::Repartition<std::uint64_t, U>;

// A counter in every lane of 64 bits, where the products have room; upper halves that nobody reads are left
// as they come. Lanes 2 i hold block first + i, lanes 2 i + 1 those behind, so that interleaving gives
// neighbours.
template <std::size_t chains = 1>
HWY_INLINE void dense_words(std::uint32_t first, const WordAddress& run, VU* words) {
  constexpr U64 u64_tag;
  using VU64 = hn::Vec<U64>;
  const auto wide = [&](std::uint32_t value) HWY_ATTR { return hn::Set(u64_tag, value); };
  const auto times = [&](VU64 a, std::uint32_t factor)
                         HWY_ATTR { return hn::MulEven(hn::BitCast(u32_tag, a), hn::Set(u32_tag, factor)); };
  const VU64 lane = hn::Iota(u64_tag, 0);
  const VU64 behind = hn::Mul(hn::And(lane, wide(1)), wide(static_cast<std::uint32_t>(lanes / 4)));
  VU64 c0[chains], c1[chains], c2[chains], c3[chains];
  for (std::size_t j = 0; j < chains; ++j) {
    const auto begin = first + static_cast<std::uint32_t>(j * dense_vectors * lanes / 4);
    c0[j] = hn::Add(wide(begin), hn::Add(hn::ShiftRight<1>(lane), behind)), c1[j] = wide(run.purpose);
    c2[j] = wide(static_cast<std::uint32_t>(run.sample));
    c3[j] = wide(static_cast<std::uint32_t>(run.sample >> 32));
  }
  auto k0 = static_cast<std::uint32_t>(run.seed), k1 = static_cast<std::uint32_t>(run.seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
    for (std::size_t j = 0; j < chains; ++j) {
      const VU64 a = times(c0[j], 0xD2511F53u), b = times(c2[j], 0xCD9E8D57u);
      c0[j] = hn::Xor3(hn::ShiftRight<32>(b), c1[j], wide(k0));
      c2[j] = hn::Xor3(hn::ShiftRight<32>(a), c3[j], wide(k1));
      c1[j] = b;
      c3[j] = a;
    }
  const auto pair = [&](VU64 even, VU64 odd)
                        HWY_ATTR { return hn::Or(hn::And(even, wide(0xffffffffu)), hn::ShiftLeft<32>(odd)); };
  for (std::size_t j = 0; j < chains; ++j) {
    const VU64 front = pair(c0[j], c1[j]), back = pair(c2[j], c3[j]);
    words[2 * j] = hn::BitCast(u32_tag, hn::InterleaveLower(u64_tag, front, back));
    words[2 * j + 1] = hn::BitCast(u32_tag, hn::InterleaveUpper(u64_tag, front, back));
  }
}
#endif

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
