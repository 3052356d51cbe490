#include "superstep/target/cpu/kernels/sequence/attention_loops.h"

#include <algorithm>
#include <limits>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/sequence/attention_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {
namespace {

constexpr auto width_of_vector = static_cast<std::int64_t>(lanes);
constexpr float infinity = std::numeric_limits<float>::infinity();

// Calls body(i, n) for the vectors of a row: the elements i to i + n - 1, all full but the last.
template <class Body>
HWY_INLINE void for_each_vector(std::int64_t length, const Body& body) {
  std::int64_t i = 0;
  for (; i + width_of_vector <= length; i += width_of_vector) body(i, lanes);
  if (i < length) body(i, static_cast<std::size_t>(length - i));
}

// Elements i to i + n - 1 of a row whose columns lie 0 or 1 apart.
template <class T>
HWY_INLINE V load_column(const T* row, std::int64_t column, std::int64_t i, std::size_t n) {
  return column == 0 ? constant(static_cast<float>(*row)) : load_first(row + i, n);
}

HWY_INLINE Mask is_hidden(const ScoreBlock& b, std::int64_t row, std::int64_t i, std::size_t n) {
  const V zero = hn::Zero(f32_tag);
  const V given = load_column(b.condition + row * b.condition_row, b.condition_column, i, n);
  return b.hidden_if ? hn::Ne(given, zero) : hn::Eq(given, zero);
}

template <bool biased, bool conditional>
HWY_INLINE V finished(const ScoreBlock& b, std::int64_t row, std::int64_t i, std::size_t n) {
  V z = hn::Mul(load_first(b.scores + row * b.stride + i, n), constant(b.scale));
  if constexpr (biased)
    z = hn::MulAdd(load_column(b.bias + row * b.bias_row, b.bias_column, i, n), constant(b.bias_scale), z);
  if constexpr (conditional) z = hn::IfThenElse(is_hidden(b, row, i, n), constant(b.hidden), z);
  return z;
}

// What is subtracted from a row's scores: no maximum of minus infinity, which would make NaN of later keys.
HWY_INLINE float shift_of(float maximum) { return maximum == -infinity ? 0 : maximum; }

template <bool biased, bool conditional>
void finish_rows(const ScoreBlock& b, const RowState* state) {
  for (std::int64_t row = 0; row < b.rows; ++row) {
    V most = constant(-infinity);
    for_each_vector(b.keys, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      const V z = finished<biased, conditional>(b, row, i, n);
      store_first(z, b.scores + row * b.stride + i, n);
      const V counted = n == lanes ? z : hn::IfThenElse(hn::FirstN(f32_tag, n), z, constant(-infinity));
      most = max_or_second(most, counted);
    });
    if (!state) continue;
    const float old = state->maximum[row], found = std::max(old, max_of_lanes(most));
    state->maximum[row] = found;
    state->correction[row] = hn::GetLane(exp_negative(constant(old == -infinity ? -infinity : old - found)));
  }
}

void finish_scores(const ScoreBlock& b, const RowState* state) {
  if (b.bias) return b.condition ? finish_rows<true, true>(b, state) : finish_rows<true, false>(b, state);
  b.condition ? finish_rows<false, true>(b, state) : finish_rows<false, false>(b, state);
}

template <bool drops>
HWY_INLINE void exponential_rows(const ScoreBlock& b, const RowState& state, const float* dropped) {
  for (std::int64_t row = 0; row < b.rows; ++row) {
    float* scores = b.scores + row * b.stride;
    const V shift = constant(shift_of(state.maximum[row]));
    V sum = hn::Zero(f32_tag);
    for_each_vector(b.keys, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      V e = exp_negative(hn::Sub(load_first(scores + i, n), shift));
      if (n != lanes) e = hn::IfThenElseZero(hn::FirstN(f32_tag, n), e);
      sum = hn::Add(sum, e);
      if constexpr (drops) e = hn::Mul(e, load_first(dropped + row * b.stride + i, n));
      store_first(e, scores + i, n);
    });
    state.sum[row] = state.sum[row] * state.correction[row] + sum_of_lanes(sum);
  }
}

void exponentials(const ScoreBlock& b, const RowState& state, const float* dropped) {
  dropped ? exponential_rows<true>(b, state, dropped) : exponential_rows<false>(b, state, nullptr);
}

void scale_rows(float* x, std::int64_t stride, std::int64_t rows, std::int64_t width, const float* factor) {
  for (std::int64_t row = 0; row < rows; ++row, x += stride) {
    const V f = constant(factor[row]);
    for_each_vector(width, [&](std::int64_t i, std::size_t n)
                               HWY_ATTR { store_first(hn::Mul(load_first(x + i, n), f), x + i, n); });
  }
}

void row_dots(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride, std::int64_t rows,
              std::int64_t width, float* result) {
  for (std::int64_t row = 0; row < rows; ++row, a += a_stride, b += b_stride) {
    V sum = hn::Zero(f32_tag);
    for_each_vector(width, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      sum = hn::MulAdd(load_first(a + i, n), load_first(b + i, n), sum);
    });
    result[row] = sum_of_lanes(sum);
  }
}

template <bool drops, bool conditional>
HWY_INLINE void gradient_rows(const ScoreBlock& b, float* d_weights, const float* dropped,
                              const float* maximum, const float* inverse_sum, const float* dot) {
  const V scale = constant(b.scale);
  for (std::int64_t row = 0; row < b.rows; ++row) {
    const std::int64_t at = row * b.stride;
    const V shift = constant(shift_of(maximum[row])), inverse = constant(inverse_sum[row]);
    const V row_dot = constant(dot[row]);
    for_each_vector(b.keys, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      const V weight = hn::Mul(exp_negative(hn::Sub(load_first(b.scores + at + i, n), shift)), inverse);
      V d = load_first(d_weights + at + i, n), used = weight;
      if constexpr (drops) {
        const V drop = load_first(dropped + at + i, n);
        used = hn::Mul(weight, drop);
        d = hn::Mul(d, drop);
      }
      V d_score = hn::Mul(scale, hn::Mul(weight, hn::Sub(d, row_dot)));
      if constexpr (conditional) d_score = hn::IfThenZeroElse(is_hidden(b, row, i, n), d_score);
      store_first(used, b.scores + at + i, n);
      store_first(d_score, d_weights + at + i, n);
    });
  }
}

void gradient(const ScoreBlock& b, float* d, const float* dropped, const float* maximum,
              const float* inverse_sum, const float* dot) {
  if (b.condition)
    return dropped ? gradient_rows<true, true>(b, d, dropped, maximum, inverse_sum, dot)
                   : gradient_rows<false, true>(b, d, dropped, maximum, inverse_sum, dot);
  dropped ? gradient_rows<true, false>(b, d, dropped, maximum, inverse_sum, dot)
          : gradient_rows<false, false>(b, d, dropped, maximum, inverse_sum, dot);
}

}  // namespace

AttentionLoops attention_passes() { return {finish_scores, exponentials, scale_rows, row_dots, gradient}; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(attention_passes);

AttentionLoops attention_loops() { return SUPERSTEP_VECTOR_FUNCTION(attention_passes)(); }

}  // namespace superstep::kernels
#endif
