#include "superstep/target/cpu/kernels/depthwise_loops.h"

#include "superstep/target/cpu/kernels/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/depthwise_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

template <DepthwiseFinish finish>
HWY_INLINE V finished(V v) {
  if (finish == DepthwiseFinish::relu) return max_or_second(hn::Zero(f32_tag), v);
  if (finish == DepthwiseFinish::silu) return silu(v);
  if (finish == DepthwiseFinish::hard_swish) return hard_swish(v);
  return v;
}

HWY_INLINE V first_summand(const DepthwiseRun& r, const float* result, std::int64_t channel, std::size_t n) {
  if (r.accumulate) return load_first(result, n);
  return r.bias ? load_first(r.bias + channel, n) : hn::Zero(f32_tag);
}

// One vector of channels of `columns` neighbouring results: a tap's weights are read once for all of them.
template <std::size_t columns, DepthwiseFinish finish, class T>
HWY_INLINE void result_block(const DepthwiseRun& r, std::int64_t column, std::int64_t channel,
                             std::size_t n) {
  V sum[columns];
  float* result = r.result + column * r.result_stride + channel;
  unrolled<columns>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
    sum[j] = first_summand(r, result + static_cast<std::int64_t>(j) * r.result_stride, channel, n);
  });
  for (std::int64_t tap = 0; tap < r.taps.count; ++tap) {
    const V weight = load_first(static_cast<const T*>(r.weights) + r.taps.weight_offsets[tap] + channel, n);
    const T* source =
        static_cast<const T*>(r.source) + r.taps.source_offsets[tap] + column * r.source_stride + channel;
    unrolled<columns>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
      const V v = load_first(source + static_cast<std::int64_t>(j) * r.source_stride, n);
      sum[j] = hn::MulAdd(v, weight, sum[j]);
    });
  }
  unrolled<columns>([&](auto j) SUPERSTEP_INLINE_LAMBDA {
    store_first(finished<finish>(sum[j]), result + static_cast<std::int64_t>(j) * r.result_stride, n);
  });
}

// `groups` vectors of channels of one result, so that their sums do not wait for one another.
template <std::size_t groups, DepthwiseFinish finish, class T>
HWY_INLINE void single_result(const DepthwiseRun& r, std::int64_t column, std::int64_t channel,
                              std::size_t n) {
  V sum[groups];
  float* result = r.result + column * r.result_stride + channel;
  unrolled<groups>([&](auto g) SUPERSTEP_INLINE_LAMBDA {
    const auto at = static_cast<std::int64_t>(g * lanes);
    sum[g] = first_summand(r, result + at, channel + at, n);
  });
  for (std::int64_t tap = 0; tap < r.taps.count; ++tap) {
    const T* weight = static_cast<const T*>(r.weights) + r.taps.weight_offsets[tap] + channel;
    const T* source =
        static_cast<const T*>(r.source) + r.taps.source_offsets[tap] + column * r.source_stride + channel;
    unrolled<groups>([&](auto g) SUPERSTEP_INLINE_LAMBDA {
      sum[g] = hn::MulAdd(load_first(source + g * lanes, n), load_first(weight + g * lanes, n), sum[g]);
    });
  }
  unrolled<groups>([&](auto g) SUPERSTEP_INLINE_LAMBDA {
    store_first(finished<finish>(sum[g]), result + g * lanes, n);
  });
}

template <DepthwiseFinish finish, class T>
void single_results(const DepthwiseRun& r, std::int64_t column) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t channel = 0;
  for (; channel + 4 * width <= r.channels; channel += 4 * width)
    single_result<4, finish, T>(r, column, channel, lanes);
  for (; channel + width <= r.channels; channel += width)
    single_result<1, finish, T>(r, column, channel, lanes);
  if (channel < r.channels)
    single_result<1, finish, T>(r, column, channel, static_cast<std::size_t>(r.channels - channel));
}

// All channels of a few columns before the next ones: memory is read in the order in which it lies.
template <std::size_t columns, DepthwiseFinish finish, class T>
HWY_INLINE void result_channels(const DepthwiseRun& r, std::int64_t column) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t channel = 0;
  for (; channel + width <= r.channels; channel += width)
    result_block<columns, finish, T>(r, column, channel, lanes);
  if (channel < r.channels)
    result_block<columns, finish, T>(r, column, channel, static_cast<std::size_t>(r.channels - channel));
}

template <DepthwiseFinish finish, class T>
void results(const DepthwiseRun& r) {
  std::int64_t column = 0;
  for (; column + 8 <= r.columns; column += 8) result_channels<8, finish, T>(r, column);
  for (; column + 4 <= r.columns; column += 4) result_channels<4, finish, T>(r, column);
  for (; column < r.columns; ++column) single_results<finish, T>(r, column);
}

// One vector of channels of `taps` taps: dy is read once for all of them. Two interleaved sums a tap.
template <std::size_t taps, class T>
HWY_INLINE void gradient_block(const DepthwiseGradientRun& r, std::int64_t first_tap, std::int64_t channel,
                               std::size_t n) {
  V even[taps], odd[taps];
  unrolled<taps>([&](auto i) SUPERSTEP_INLINE_LAMBDA { even[i] = odd[i] = hn::Zero(f32_tag); });
  const T* gradient = static_cast<const T*>(r.gradient) + channel;
  const auto source = [&](auto i, std::int64_t column) SUPERSTEP_INLINE_LAMBDA {
    const T* p = static_cast<const T*>(r.source) +
                 r.taps.source_offsets[first_tap + static_cast<std::int64_t>(i)] + channel;
    return load_first(p + column * r.source_stride, n);
  };
  std::int64_t column = 0;
  for (; column + 2 <= r.columns; column += 2) {
    const V a = load_first(gradient + column * r.gradient_stride, n);
    const V b = load_first(gradient + (column + 1) * r.gradient_stride, n);
    unrolled<taps>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      even[i] = hn::MulAdd(a, source(i, column), even[i]);
      odd[i] = hn::MulAdd(b, source(i, column + 1), odd[i]);
    });
  }
  if (column < r.columns) {
    const V a = load_first(gradient + column * r.gradient_stride, n);
    unrolled<taps>([&](auto i)
                       SUPERSTEP_INLINE_LAMBDA { even[i] = hn::MulAdd(a, source(i, column), even[i]); });
  }
  unrolled<taps>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
    float* sum = r.sums + r.taps.weight_offsets[first_tap + static_cast<std::int64_t>(i)] + channel;
    store_first(hn::Add(load_first(sum, n), hn::Add(even[i], odd[i])), sum, n);
  });
}

template <class T>
HWY_INLINE void gradient_taps(const DepthwiseGradientRun& r, std::int64_t channel, std::size_t n) {
  std::int64_t tap = 0;
  for (; tap + 5 <= r.taps.count; tap += 5) gradient_block<5, T>(r, tap, channel, n);
  for (; tap + 3 <= r.taps.count; tap += 3) gradient_block<3, T>(r, tap, channel, n);
  for (; tap < r.taps.count; ++tap) gradient_block<1, T>(r, tap, channel, n);
}

template <class T>
void gradients(const DepthwiseGradientRun& r) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t channel = 0;
  for (; channel + width <= r.channels; channel += width) gradient_taps<T>(r, channel, lanes);
  if (channel < r.channels) gradient_taps<T>(r, channel, static_cast<std::size_t>(r.channels - channel));
}

template <class T>
DepthwiseLoop* finished_loop(DepthwiseFinish finish) {
  switch (finish) {
    case DepthwiseFinish::relu: return results<DepthwiseFinish::relu, T>;
    case DepthwiseFinish::silu: return results<DepthwiseFinish::silu, T>;
    case DepthwiseFinish::hard_swish: return results<DepthwiseFinish::hard_swish, T>;
    default: return results<DepthwiseFinish::none, T>;
  }
}
DepthwiseLoop* result_loop(ElementType type, DepthwiseFinish finish) {
  return type == ElementType::bf16 ? finished_loop<bf16>(finish) : finished_loop<float>(finish);
}
DepthwiseGradientLoop* gradient_loop(ElementType type) {
  return type == ElementType::bf16 ? gradients<bf16> : gradients<float>;
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(result_loop);
HWY_EXPORT(gradient_loop);

DepthwiseLoop* depthwise_loop(ElementType type, DepthwiseFinish finish) {
  return SUPERSTEP_VECTOR_FUNCTION(result_loop)(type, finish);
}
DepthwiseGradientLoop* depthwise_gradient_loop(ElementType type) {
  return SUPERSTEP_VECTOR_FUNCTION(gradient_loop)(type);
}

}  // namespace superstep::kernels
#endif
