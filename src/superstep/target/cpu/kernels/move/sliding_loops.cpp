#include "superstep/target/cpu/kernels/move/sliding_loops.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/move/sliding_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// to[i] = body(i, elements) of every vector of a run.
template <class To, class Body>
HWY_INLINE void map_run(std::int64_t n, To* to, const Body& body) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t i = 0;
  for (; i + width <= n; i += width) store_first(body(i, lanes), to + i, lanes);
  if (i < n) {
    const auto rest = static_cast<std::size_t>(n - i);
    store_first(body(i, rest), to + i, rest);
  }
}

HWY_INLINE V larger_of(V a, V b) { return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a); }

template <class To>
void larger_run(const float* a, const float* b, std::int64_t n, To* to) {
  map_run(n, to, [&](std::int64_t i, std::size_t count) HWY_ATTR {
    return larger_of(load_first(a + i, count), load_first(b + i, count));
  });
}

template <class From>
void widen_run(const void* from, std::int64_t n, float* to) {
  const auto* values = static_cast<const From*>(from);
  map_run(n, to, [&](std::int64_t i, std::size_t count) HWY_ATTR { return load_first(values + i, count); });
}

void larger_loop(const float* a, const float* b, std::int64_t n, float* to) { larger_run(a, b, n, to); }

void sum_loop(const float* a, const float* b, std::int64_t n, float* to) {
  map_run(n, to, [&](std::int64_t i, std::size_t count) HWY_ATTR {
    return hn::Add(load_first(a + i, count), load_first(b + i, count));
  });
}

template <class To>
void store_larger_run(const float* a, const float* b, std::int64_t n, void* to) {
  larger_run(a, b, n, static_cast<To*>(to));
}

template <class To>
void store_average_run(const float* sums, const float* counts, float rows, std::int64_t n, void* to) {
  const V height = constant(rows);
  map_run(n, static_cast<To*>(to), [&](std::int64_t i, std::size_t count) HWY_ATTR {
    return hn::Div(load_first(sums + i, count), hn::Mul(height, load_first(counts + i, count)));
  });
}

SlidingLoops sliding_loops_of(ElementType from, ElementType to) {
  const bool wide = to == ElementType::f32;
  return {from == ElementType::f32 ? widen_run<float> : widen_run<bf16>, larger_loop, sum_loop,
          wide ? store_larger_run<float> : store_larger_run<bf16>,
          wide ? store_average_run<float> : store_average_run<bf16>};
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(sliding_loops_of);

SlidingLoops sliding_loops(ElementType from, ElementType to) {
  return SUPERSTEP_VECTOR_FUNCTION(sliding_loops_of)(from, to);
}

}  // namespace superstep::kernels
#endif
