#include "superstep/target/cpu/kernels/convolution/stem_loops.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/convolution/stem_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

template <DepthwiseFinish finish>
HWY_INLINE V finished_sum(V v, [[maybe_unused]] const StemRun& r) {
  if (finish == DepthwiseFinish::relu) return max_or_second(hn::Zero(f32_tag), v);
  if (finish == DepthwiseFinish::clip) return clamp(v, constant(r.low), constant(r.high));
  if (finish == DepthwiseFinish::silu) return silu(v);
  if (finish == DepthwiseFinish::hard_swish) return hard_swish(v);
  return v;
}

// `groups` vectors of channels, the last of n, of `columns` neighbouring results: as many sums in registers.
template <std::size_t columns, std::size_t groups, DepthwiseFinish finish, class R>
HWY_INLINE void stem_block(const StemRun& r, std::int64_t column, std::int64_t channel, std::size_t n) {
  V sum[columns * groups];
  const auto count = [&](std::size_t g) SUPERSTEP_INLINE_LAMBDA { return g + 1 == groups ? n : lanes; };
  unrolled<groups>([&](auto g) SUPERSTEP_INLINE_LAMBDA {
    const V first = r.bias ? load_first(r.bias + channel + g * lanes, count(g)) : hn::Zero(f32_tag);
    unrolled<columns>([&](auto c) SUPERSTEP_INLINE_LAMBDA { sum[c * groups + g] = first; });
  });
  for (std::int64_t tap = 0; tap < r.taps.count; ++tap) {
    const float* weights = r.weights + r.taps.weight_offsets[tap] + channel;
    const float* source = r.source + r.taps.source_offsets[tap] + column * r.source_stride;
    V weight[groups];
    unrolled<groups>([&](auto g) SUPERSTEP_INLINE_LAMBDA {
      weight[g] = in_register(load_first(weights + g * lanes, count(g)));
    });
    unrolled<columns>([&](auto c) SUPERSTEP_INLINE_LAMBDA {
      const V x = constant(source[static_cast<std::int64_t>(c) * r.source_stride]);
      unrolled<groups>([&](auto g) SUPERSTEP_INLINE_LAMBDA {
        sum[c * groups + g] = hn::MulAdd(x, weight[g], sum[c * groups + g]);
      });
    });
  }
  unrolled<columns>([&](auto c) SUPERSTEP_INLINE_LAMBDA {
    R* result =
        static_cast<R*>(r.result) + (column + static_cast<std::int64_t>(c)) * r.result_stride + channel;
    unrolled<groups>([&](auto g) SUPERSTEP_INLINE_LAMBDA {
      store_first(finished_sum<finish>(sum[c * groups + g], r), result + g * lanes, count(g));
    });
  });
}

template <std::size_t columns, std::size_t groups, DepthwiseFinish finish, class R>
void stem_columns(const StemRun& r, std::int64_t channel, std::size_t n) {
  constexpr auto together = static_cast<std::int64_t>(columns);
  std::int64_t column = 0;
  for (; column + together <= r.columns; column += together)
    stem_block<columns, groups, finish, R>(r, column, channel, n);
  if (column == r.columns) return;
  // The last ones again with some before them, rather than one by one.
  if (r.columns > together)
    return stem_block<columns, groups, finish, R>(r, r.columns - together, channel, n);
  for (; column < r.columns; ++column) stem_block<1, groups, finish, R>(r, column, channel, n);
}

// With 32 registers 24 sums are in them, with 16 12.
#if HWY_TARGET == HWY_AVX3
constexpr std::size_t most_groups = 4, most_sums = 24;
#else
constexpr std::size_t most_groups = 2, most_sums = 12;
#endif

template <DepthwiseFinish finish, class R>
void stem_results(const StemRun& r) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  for (std::int64_t channel = 0; channel < r.channels;) {
    const std::int64_t left = r.channels - channel, vectors = (left + width - 1) / width;
    const std::int64_t groups = vectors >= 4 && most_groups == 4 ? 4 : vectors >= 2 ? 2 : 1;
    const auto n = static_cast<std::size_t>(std::min(width, left - (groups - 1) * width));
    if (groups == 4)
      stem_columns<most_sums / most_groups, most_groups, finish, R>(r, channel, n);
    else if (groups == 2)
      stem_columns<most_sums / 2, 2, finish, R>(r, channel, n);
    else
      stem_columns<12, 1, finish, R>(r, channel, n);
    channel += groups * width;
  }
}

template <class R>
StemLoop* finished_stem(DepthwiseFinish finish) {
  switch (finish) {
    case DepthwiseFinish::relu: return stem_results<DepthwiseFinish::relu, R>;
    case DepthwiseFinish::clip: return stem_results<DepthwiseFinish::clip, R>;
    case DepthwiseFinish::silu: return stem_results<DepthwiseFinish::silu, R>;
    case DepthwiseFinish::hard_swish: return stem_results<DepthwiseFinish::hard_swish, R>;
    default: return stem_results<DepthwiseFinish::none, R>;
  }
}
StemLoop* loop_of_stem(ElementType result, DepthwiseFinish finish) {
  return result == ElementType::bf16 ? finished_stem<bf16>(finish) : finished_stem<float>(finish);
}
std::int64_t lanes_of_stem() { return static_cast<std::int64_t>(lanes); }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loop_of_stem);
HWY_EXPORT(lanes_of_stem);

StemLoop* stem_loop(ElementType result, DepthwiseFinish finish) {
  return SUPERSTEP_VECTOR_FUNCTION(loop_of_stem)(result, finish);
}
std::int64_t stem_lanes() { return SUPERSTEP_VECTOR_FUNCTION(lanes_of_stem)(); }

}  // namespace superstep::kernels
#endif
