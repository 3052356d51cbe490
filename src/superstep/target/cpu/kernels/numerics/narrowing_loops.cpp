#include "superstep/target/cpu/kernels/numerics/narrowing_loops.h"

#include <algorithm>

#include "superstep/numerics/definition.h"
#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/numerics/narrowing_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/elementwise/philox-inl.h"
#include "superstep/target/cpu/kernels/numerics/narrowing-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

template <NarrowingKind kind, bool draws>
void narrow_elements(const NarrowingRun& run) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  const NarrowingFacts facts(run.how);
  const VU lane = hn::Iota(u32_tag, 0);
  for (std::int64_t i = 0; i < run.n; i += width) {
    const auto count = static_cast<std::size_t>(std::min(width, run.n - i));
    VU word = hn::Zero(u32_tag);
    if constexpr (draws) {
      // Rows of elements begin at multiples of 2^32, which no vector crosses: first is a multiple of a
      // vector.
      const auto element = static_cast<std::uint64_t>(run.first + i);
      const WordAddress address{.seed = run.key,
                                .sample = (element >> 32) / 4 | std::uint64_t{run.node} << 32,
                                .purpose = numerics::element_row};
      const Words words =
          philox_lanes(hn::Add(hn::Set(u32_tag, static_cast<std::uint32_t>(element)), lane), address);
      word = words.w[(element >> 32) % 4];
    }
    store_first(narrowed<kind>(load_first(run.from + i, count), word, facts), run.to + i, count);
  }
}

void narrowing(const NarrowingRun& run) {
  switch (kind_of(run.how)) {
    case NarrowingKind::none:
      if (run.to != run.from) std::copy_n(run.from, run.n, run.to);
      return;
    case NarrowingKind::f16_nearest: return narrow_elements<NarrowingKind::f16_nearest, false>(run);
    case NarrowingKind::bf16_nearest: return narrow_elements<NarrowingKind::bf16_nearest, false>(run);
    case NarrowingKind::any: break;
  }
  if (run.how.rounding == numerics::Rounding::stochastic)
    return narrow_elements<NarrowingKind::any, true>(run);
  narrow_elements<NarrowingKind::any, false>(run);
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(narrowing);

NarrowingLoop* narrowing_loop() { return SUPERSTEP_VECTOR_FUNCTION(narrowing); }

}  // namespace superstep::kernels
#endif
