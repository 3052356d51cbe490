#include "superstep/target/cpu/kernels/rows/reduce_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/rows/reduce_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto width = static_cast<std::int64_t>(lanes);
constexpr std::int64_t block_rows = 64;  // rows added up before the block joins the total

struct SumOf {
  static constexpr float start = 0;
  static HWY_INLINE V of_element(V v) { return v; }
  static HWY_INLINE V join(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE float across(V v) { return sum_of_lanes(v); }
};
struct SquareSumOf : SumOf {
  static HWY_INLINE V of_element(V v) { return hn::Mul(v, v); }
};
struct ProductOf {
  static constexpr float start = 1;
  static HWY_INLINE V of_element(V v) { return v; }
  static HWY_INLINE V join(V a, V b) { return hn::Mul(a, b); }
  static HWY_INLINE float across(V v) {
    float values[lanes], product = 1;
    store(v, values);
    for (float value : values) product *= value;
    return product;
  }
};
// NaN wins, as ONNX has it.
struct MaxOf {
  static constexpr float start = -std::numeric_limits<float>::infinity();
  static HWY_INLINE V of_element(V v) { return v; }
  static HWY_INLINE V join(V a, V b) { return hn::IfThenElse(hn::IsNaN(a), a, max_or_second(a, b)); }
  static HWY_INLINE float across(V v) {
    float values[lanes], best = start;
    store(v, values);
    for (float value : values) best = std::isnan(best) || best > value ? best : value;
    return best;
  }
};
struct MinOf {
  static constexpr float start = std::numeric_limits<float>::infinity();
  static HWY_INLINE V of_element(V v) { return v; }
  static HWY_INLINE V join(V a, V b) { return hn::IfThenElse(hn::IsNaN(a), a, min_or_second(a, b)); }
  static HWY_INLINE float across(V v) {
    float values[lanes], best = start;
    store(v, values);
    for (float value : values) best = std::isnan(best) || best < value ? best : value;
    return best;
  }
};

// Four vectors of columns at once, so that one chain of sums does not wait for itself.
template <class Op, class T>
HWY_INLINE void reduce_four_vectors(const ReduceRun& run, std::int64_t i) {
  const V start = constant(Op::start);
  const T* x = static_cast<const T*>(run.x) + i;
  V total[4] = {start, start, start, start};
  for (std::int64_t first = 0; first < run.reduced; first += block_rows) {
    V a = start, b = start, c = start, d = start;
    for (std::int64_t r = first; r < std::min(first + block_rows, run.reduced); ++r, x += run.stride) {
      a = Op::join(a, Op::of_element(load(x)));
      b = Op::join(b, Op::of_element(load(x + width)));
      c = Op::join(c, Op::of_element(load(x + 2 * width)));
      d = Op::join(d, Op::of_element(load(x + 3 * width)));
    }
    total[0] = Op::join(total[0], a);
    total[1] = Op::join(total[1], b);
    total[2] = Op::join(total[2], c);
    total[3] = Op::join(total[3], d);
  }
  for (std::int64_t v = 0; v < 4; ++v) store(total[v], run.y + i + v * width);
}

template <class Op, class T>
void reduce_columns(const ReduceRun& run) {
  const V start = constant(Op::start);
  std::int64_t i = 0;
  for (; i + 4 * width <= run.inner; i += 4 * width) reduce_four_vectors<Op, T>(run, i);
  for (; i < run.inner; i += width) {
    const auto n = static_cast<std::size_t>(std::min(width, run.inner - i));
    const T* x = static_cast<const T*>(run.x) + i;
    V total = start;
    for (std::int64_t first = 0; first < run.reduced; first += block_rows) {
      V block = start;
      for (std::int64_t r = first; r < std::min(first + block_rows, run.reduced); ++r, x += run.stride)
        block = Op::join(block, Op::of_element(load_first(x, n)));
      total = Op::join(total, block);
    }
    store_first(total, run.y + i, n);
  }
}

template <class Op, class T>
void reduce_row(const ReduceRun& run) {
  const V start = constant(Op::start);
  const T* x = static_cast<const T*>(run.x);
  V total = start;
  for (std::int64_t first = 0; first < run.reduced; first += block_rows * width) {
    V a = start, b = start;
    const std::int64_t end = std::min(first + block_rows * width, run.reduced);
    std::int64_t i = first;
    for (; i + 2 * width <= end; i += 2 * width) {
      a = Op::join(a, Op::of_element(load(x + i)));
      b = Op::join(b, Op::of_element(load(x + i + width)));
    }
    for (; i < end; i += width) {
      const auto n = static_cast<std::size_t>(std::min(width, end - i));
      const V v = Op::of_element(load_first(x + i, n));
      a = Op::join(a, n == lanes ? v : hn::IfThenElse(hn::FirstN(f32_tag, n), v, start));
    }
    total = Op::join(total, Op::join(a, b));
  }
  *run.y = Op::across(total);
}

template <class Op>
ReduceLoops loops_for(ElementType type) {
  if (type == ElementType::bf16) return {reduce_columns<Op, bf16>, reduce_row<Op, bf16>};
  return {reduce_columns<Op, float>, reduce_row<Op, float>};
}

ReduceLoops loops_of(Reduction reduction, ElementType type) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean: return loops_for<SumOf>(type);
    case Reduction::sum_of_squares: return loops_for<SquareSumOf>(type);
    case Reduction::product: return loops_for<ProductOf>(type);
    case Reduction::max: return loops_for<MaxOf>(type);
    case Reduction::min: return loops_for<MinOf>(type);
  }
  return {};
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loops_of);

ReduceLoops reduce_loops(Reduction reduction, ElementType type) {
  return SUPERSTEP_VECTOR_FUNCTION(loops_of)(reduction, type);
}

float combine(Reduction reduction, float a, float b) {
  switch (reduction) {
    case Reduction::product: return a * b;
    case Reduction::max: return std::isnan(a) || a > b ? a : b;
    case Reduction::min: return std::isnan(a) || a < b ? a : b;
    default: return a + b;
  }
}

}  // namespace superstep::kernels
#endif
