#include "superstep/target/cpu/kernels/move/pool_loops.h"

#include <cstddef>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/move/pool_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

template <class Body>
HWY_INLINE void for_each_vector(std::int64_t n, const Body& body) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t i = 0;
  for (; i + width <= n; i += width) body(i, lanes);
  if (i < n) body(i, static_cast<std::size_t>(n - i));
}

template <class T>
HWY_INLINE const T* operand(const PoolRun& run, std::int64_t tap) {
  return static_cast<const T*>(run.operands[tap]);
}

// body(where in the operands, in the results, in the winners, elements) of every vector of every window.
template <class Body>
HWY_INLINE void for_each_result(const PoolRun& run, const Body& body) {
  for (std::int64_t p = 0; p < run.positions; ++p)
    for_each_vector(run.n, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      body(p * run.operand_step + i, p * run.result_step + i, p * run.winner_step + i, n);
    });
}

// The largest alone, or NaN where a tap is.
template <class From, class To>
void largest_loop(const PoolRun& run) {
  To* result = static_cast<To*>(run.result);
  for_each_result(run, [&](std::int64_t x, std::int64_t y, std::int64_t, std::size_t n) HWY_ATTR {
    V best = load_first(operand<From>(run, 0) + x, n);
    for (std::int64_t tap = 1; tap < run.taps; ++tap) {
      const V v = load_first(operand<From>(run, tap) + x, n);
      best = hn::IfThenElse(hn::Or(hn::Gt(v, best), hn::IsNaN(v)), v, best);
    }
    store_first(best, result + y, n);
  });
}

template <class From, class To>
void max_loop(const PoolRun& run) {
  if (!run.winners) return largest_loop<From, To>(run);
  To* result = static_cast<To*>(run.result);
  for_each_result(run, [&](std::int64_t x, std::int64_t y, std::int64_t at, std::size_t n) HWY_ATTR {
    V best = load_first(operand<From>(run, 0) + x, n);
    V winner = constant(run.numbers[0]);
    for (std::int64_t tap = 1; tap < run.taps; ++tap) {
      const V v = load_first(operand<From>(run, tap) + x, n);
      const Mask wins = hn::Or(hn::Gt(v, best), hn::AndNot(hn::IsNaN(best), hn::IsNaN(v)));  // the first NaN
      best = hn::IfThenElse(wins, v, best);
      winner = hn::IfThenElse(wins, constant(run.numbers[tap]), winner);
    }
    store_first(best, result + y, n);
    store_first(winner, run.winners + at, n);
  });
}

// Of one window, from element `i` on, in vectors of `width` bytes and then of half as many: the few channels
// of a single sample fill no vector of 64. `x`: where in the operands.
template <std::size_t width>
HWY_INLINE void max_bytes_from(const PoolRun& run, std::int64_t x, std::uint8_t* result, std::int64_t i) {
  const hn::CappedTag<std::uint8_t, width> bytes;
  const auto step = static_cast<std::int64_t>(hn::Lanes(bytes));
  for (; i + step <= run.n; i += step) {
    auto best = hn::LoadU(bytes, operand<std::uint8_t>(run, 0) + x + i);
    for (std::int64_t tap = 1; tap < run.taps; ++tap)
      best = hn::Max(best, hn::LoadU(bytes, operand<std::uint8_t>(run, tap) + x + i));
    hn::StoreU(best, bytes, result + i);
  }
  if constexpr (width > 1)
    if (i < run.n) max_bytes_from<width / 2>(run, x, result, i);
}

// Bytes as they are, without winners.
void max_bytes_loop(const PoolRun& run) {
  auto* result = static_cast<std::uint8_t*>(run.result);
  for (std::int64_t p = 0; p < run.positions; ++p)
    max_bytes_from<64>(run, p * run.operand_step, result + p * run.result_step, 0);
}

template <class From, class To>
void average_loop(const PoolRun& run) {
  To* result = static_cast<To*>(run.result);
  const V factor = constant(run.factors[0]);
  for_each_result(run, [&](std::int64_t x, std::int64_t y, std::int64_t, std::size_t n) HWY_ATTR {
    V sum = hn::Zero(f32_tag);
    for (std::int64_t tap = 0; tap < run.taps; ++tap)
      sum = hn::Add(sum, load_first(operand<From>(run, tap) + x, n));
    store_first(hn::Mul(sum, factor), result + y, n);
  });
}

template <class From, class To>
void max_gradient_loop(const PoolRun& run) {
  To* result = static_cast<To*>(run.result);
  for_each_vector(run.n, [&](std::int64_t i, std::size_t n) HWY_ATTR {
    V sum = run.accumulate ? load_first(result + i, n) : hn::Zero(f32_tag);
    for (std::int64_t k = 0; k < run.taps; ++k) {
      const Mask won = hn::Eq(load_first(run.argmax[k] + i, n), constant(run.numbers[k]));
      sum = hn::Add(sum, hn::IfThenElseZero(won, load_first(operand<From>(run, k) + i, n)));
    }
    store_first(sum, result + i, n);
  });
}

template <class From, class To>
void average_gradient_loop(const PoolRun& run) {
  To* result = static_cast<To*>(run.result);
  for_each_vector(run.n, [&](std::int64_t i, std::size_t n) HWY_ATTR {
    V sum = run.accumulate ? load_first(result + i, n) : hn::Zero(f32_tag);
    for (std::int64_t k = 0; k < run.taps; ++k)
      sum = hn::MulAdd(load_first(operand<From>(run, k) + i, n), constant(run.factors[k]), sum);
    store_first(sum, result + i, n);
  });
}

template <class From, class To>
PoolLoops loops_between() {
  return {max_loop<From, To>, average_loop<From, To>, max_gradient_loop<From, To>,
          average_gradient_loop<From, To>};
}

PoolLoops loops_of(ElementType from, ElementType to) {
  if (from == ElementType::u8) return {max_bytes_loop, nullptr, nullptr, nullptr};
  const bool wide = to == ElementType::f32;
  if (from == ElementType::f32) return wide ? loops_between<float, float>() : loops_between<float, bf16>();
  return wide ? loops_between<bf16, float>() : loops_between<bf16, bf16>();
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loops_of);

PoolLoops pool_loops(ElementType from, ElementType to) {
  return SUPERSTEP_VECTOR_FUNCTION(loops_of)(from, to);
}

}  // namespace superstep::kernels
#endif
