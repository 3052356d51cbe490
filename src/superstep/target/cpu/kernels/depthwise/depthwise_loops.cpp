#include "superstep/target/cpu/kernels/depthwise/depthwise_loops.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/depthwise/depthwise_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

template <DepthwiseFinish finish>
HWY_INLINE V finished(V v, [[maybe_unused]] const DepthwiseRun& r) {
  if (finish == DepthwiseFinish::relu) return max_or_second(hn::Zero(f32_tag), v);
  if (finish == DepthwiseFinish::clip) return clamp(v, constant(r.low), constant(r.high));
  if (finish == DepthwiseFinish::silu) return silu(v);
  if (finish == DepthwiseFinish::hard_swish) return hard_swish(v);
  return v;
}

template <class R>
HWY_INLINE V first_summand(const DepthwiseRun& r, const R* result, std::int64_t channel, std::size_t n) {
  if (r.accumulate) return load_first(result, n);
  return r.bias ? load_first(r.bias + channel, n) : hn::Zero(f32_tag);
}

// `groups` vectors of channels of `columns` neighbouring results: a tap's weights are read once for all
// columns. Eight sums and more, so that none waits for the one before. n: of the last vector.
template <std::size_t columns, std::size_t groups, DepthwiseFinish finish, class T, class R>
HWY_INLINE void result_block(const DepthwiseRun& r, std::int64_t column, std::int64_t channel,
                             std::size_t n) {
  V sum[columns * groups];
  R* result = static_cast<R*>(r.result) + column * r.result_stride + channel;
  const auto place = [&](auto s) SUPERSTEP_INLINE_LAMBDA {
    return static_cast<std::int64_t>(s / groups) * r.result_stride +
           static_cast<std::int64_t>(s % groups * lanes);
  };
  unrolled<columns * groups>([&](auto s) SUPERSTEP_INLINE_LAMBDA {
    sum[s] = first_summand(r, result + place(s), channel + static_cast<std::int64_t>(s % groups * lanes), n);
  });
  for (std::int64_t tap = 0; tap < r.taps.count; ++tap) {
    const T* weights = static_cast<const T*>(r.weights) + r.taps.weight_offsets[tap] + channel;
    const T* source =
        static_cast<const T*>(r.source) + r.taps.source_offsets[tap] + column * r.source_stride + channel;
    V weight[groups];
    unrolled<groups>([&](auto g) SUPERSTEP_INLINE_LAMBDA { weight[g] = load_first(weights + g * lanes, n); });
    unrolled<columns * groups>([&](auto s) SUPERSTEP_INLINE_LAMBDA {
      const T* p = source + static_cast<std::int64_t>(s / groups) * r.source_stride + s % groups * lanes;
      sum[s] = hn::MulAdd(load_first(p, n), weight[s % groups], sum[s]);
    });
  }
  unrolled<columns * groups>([&](auto s) SUPERSTEP_INLINE_LAMBDA {
    store_first(finished<finish>(sum[s], r), result + place(s), n);
  });
}

// All channels of a few columns before the next ones: memory is read in the order in which it lies.
template <std::size_t columns, std::size_t groups, DepthwiseFinish finish, class T, class R>
HWY_INLINE void result_channels(const DepthwiseRun& r, std::int64_t column) {
  constexpr auto width = static_cast<std::int64_t>(lanes),
                 together = static_cast<std::int64_t>(groups) * width;
  std::int64_t channel = 0;
  for (; channel + together <= r.channels; channel += together)
    result_block<columns, groups, finish, T, R>(r, column, channel, lanes);
  for (; channel + width <= r.channels; channel += width)
    result_block<columns, 1, finish, T, R>(r, column, channel, lanes);
  if (channel < r.channels)
    result_block<columns, 1, finish, T, R>(r, column, channel,
                                           static_cast<std::size_t>(r.channels - channel));
}

template <DepthwiseFinish finish, class T, class R>
void results(const DepthwiseRun& r) {
  std::int64_t column = 0;
  for (; column + 8 <= r.columns; column += 8) result_channels<8, 1, finish, T, R>(r, column);
  // The last ones again with some before them, rather than one by one.
  const bool overlap = !r.accumulate;
  if (overlap && r.columns > 8 && r.columns - column > 4)
    return result_channels<8, 1, finish, T, R>(r, r.columns - 8);
  for (; column + 4 <= r.columns; column += 4) result_channels<4, 2, finish, T, R>(r, column);
  if (column == r.columns) return;
  if (overlap && r.columns > 4) return result_channels<4, 2, finish, T, R>(r, r.columns - 4);
  for (; column < r.columns; ++column) result_channels<1, 4, finish, T, R>(r, column);
}

// One vector of channels of `taps` taps: dy is read once for all of them. Two interleaved sums a tap.
template <std::size_t taps, class T>
HWY_INLINE void gradient_block(const DepthwiseGradientRun& r, std::int64_t first_tap, std::int64_t channel,
                               std::size_t n) {
  V even[taps], odd[taps];
  unrolled<taps>([&](auto i) SUPERSTEP_INLINE_LAMBDA { even[i] = odd[i] = hn::Zero(f32_tag); });
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const T* gradient = static_cast<const T*>(r.gradient) + row * r.gradient_row_stride + channel;
    const T* first[taps];
    unrolled<taps>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      first[i] = static_cast<const T*>(r.source) + row * r.source_row_stride +
                 r.taps.source_offsets[first_tap + static_cast<std::int64_t>(i)] + channel;
    });
    std::int64_t column = 0;
    for (; column + 2 <= r.columns; column += 2) {
      const V a = load_first(gradient + column * r.gradient_stride, n);
      const V b = load_first(gradient + (column + 1) * r.gradient_stride, n);
      unrolled<taps>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
        even[i] = hn::MulAdd(a, load_first(first[i] + column * r.source_stride, n), even[i]);
        odd[i] = hn::MulAdd(b, load_first(first[i] + (column + 1) * r.source_stride, n), odd[i]);
      });
    }
    if (column == r.columns) continue;
    const V a = load_first(gradient + column * r.gradient_stride, n);
    unrolled<taps>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      even[i] = hn::MulAdd(a, load_first(first[i] + column * r.source_stride, n), even[i]);
    });
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

template <class T, class R>
DepthwiseLoop* finished_loop(DepthwiseFinish finish) {
  switch (finish) {
    case DepthwiseFinish::relu: return results<DepthwiseFinish::relu, T, R>;
    case DepthwiseFinish::clip: return results<DepthwiseFinish::clip, T, R>;
    case DepthwiseFinish::silu: return results<DepthwiseFinish::silu, T, R>;
    case DepthwiseFinish::hard_swish: return results<DepthwiseFinish::hard_swish, T, R>;
    default: return results<DepthwiseFinish::none, T, R>;
  }
}
DepthwiseLoop* result_loop(ElementType source, ElementType result, DepthwiseFinish finish) {
  if (result == ElementType::bf16)
    return source == ElementType::bf16 ? finished_loop<bf16, bf16>(finish)
                                       : finished_loop<float, bf16>(finish);
  return source == ElementType::bf16 ? finished_loop<bf16, float>(finish)
                                     : finished_loop<float, float>(finish);
}

void widen(const WidenRun& r) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  for (std::int64_t column = 0; column < r.columns; ++column) {
    const bf16* from = r.source + column * r.source_stride;
    float* to = r.result + column * r.result_stride;
    std::int64_t channel = 0;
    for (; channel + width <= r.channels; channel += width) store(load(from + channel), to + channel);
    if (channel == r.channels) continue;
    const auto rest = static_cast<std::size_t>(r.channels - channel);
    store_first(load_first(from + channel, rest), to + channel, rest);
  }
}
WidenLoop* widen_columns() { return widen; }
DepthwiseGradientLoop* gradient_loop(ElementType type) {
  return type == ElementType::bf16 ? gradients<bf16> : gradients<float>;
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(result_loop);
HWY_EXPORT(gradient_loop);
HWY_EXPORT(widen_columns);

namespace {

std::optional<DepthwiseFinish> finish_of(Activation activation) {
  switch (activation) {
    case Activation::relu: return DepthwiseFinish::relu;
    case Activation::clip: return DepthwiseFinish::clip;
    case Activation::silu: return DepthwiseFinish::silu;
    case Activation::hard_swish: return DepthwiseFinish::hard_swish;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<DepthwiseEpilogue> depthwise_epilogue(const Epilogue& epilogue) {
  DepthwiseEpilogue found;
  std::size_t step = 0;
  const auto& steps = epilogue.steps;
  if (step < steps.size() && steps[step].op == EpilogueOp::bias) found.bias = true, ++step;
  if (step < steps.size() && steps[step].op == EpilogueOp::activate) {
    const EpilogueStep& activation = steps[step++];
    const auto finish = finish_of(activation.activation);
    if (!finish) return std::nullopt;
    found.finish = *finish;
    found.low = activation.alpha, found.high = activation.beta;
  }
  return step == steps.size() ? std::optional(found) : std::nullopt;
}

DepthwiseLoop* depthwise_loop(ElementType source, ElementType result, DepthwiseFinish finish) {
  return SUPERSTEP_VECTOR_FUNCTION(result_loop)(source, result, finish);
}
WidenLoop* widen_loop() { return SUPERSTEP_VECTOR_FUNCTION(widen_columns)(); }
DepthwiseGradientLoop* depthwise_gradient_loop(ElementType type) {
  return SUPERSTEP_VECTOR_FUNCTION(gradient_loop)(type);
}

}  // namespace superstep::kernels
#endif
