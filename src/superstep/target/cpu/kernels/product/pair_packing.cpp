#include "superstep/target/cpu/kernels/product/pair_packing.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/product/pair_packing.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// Two columns side by side in the halves of 32-bit lanes.
HWY_INLINE void interleave_columns(const bf16* even, const bf16* odd, std::int64_t channels, bf16* to) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  const hn::Rebind<std::uint16_t, F> half;
  const auto widened = [&](const bf16* p) HWY_ATTR {
    return hn::PromoteTo(u32_tag, hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(p)));
  };
  std::int64_t c = 0;
  for (; c + width <= channels; c += width) {
    const VU pairs = hn::Or(widened(even + c), hn::ShiftLeft<16>(widened(odd + c)));
    hn::StoreU(pairs, u32_tag, reinterpret_cast<std::uint32_t*>(to + 2 * c));
  }
  for (; c < channels; ++c) to[2 * c] = even[c], to[2 * c + 1] = odd[c];
}

void interleave_pairs(const PairPacking& p, bf16* to) {
  for (std::int64_t column = 0; column < p.columns; column += 2) {
    const bf16* from = p.from + column * p.stride;
    interleave_columns(from, from + p.stride, p.channels, to + column * p.channels);
  }
}

// A pair is one 32-bit element of a transposition.
void transpose_pairs(const PairPacking& p, bf16* to, bf16* scratch) {
  interleave_pairs(p, scratch);
  const auto* pairs = reinterpret_cast<const float*>(scratch);
  auto* result = reinterpret_cast<float*>(to);
  const std::int64_t rows = p.columns / 2;
  constexpr std::int64_t block = 64;  // channels whose lines stay in the first-level cache
  for (std::int64_t c = 0; c < p.channels; c += block)
    transpose(pairs + c, p.channels, result + c * rows, rows, rows, std::min(block, p.channels - c));
}

PairPackers packers() { return {interleave_pairs, transpose_pairs}; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(packers);

PairPackers pair_packers() { return SUPERSTEP_VECTOR_FUNCTION(packers)(); }

}  // namespace superstep::kernels
#endif
