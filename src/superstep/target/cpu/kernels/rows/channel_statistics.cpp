#include "superstep/target/cpu/kernels/rows/channel_statistics.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/rows/channel_statistics.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"
#include "superstep/target/cpu/kernels/rows/channel_statistics_loops.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr std::size_t columns = 4;  // vectors of channels that are summed side by side

// Adds the sums of a block of rows to the totals; `count` vectors, the last of `last` lanes.
template <bool moments, std::size_t count>
HWY_INLINE void sum_columns(const StatisticsBlock& b, std::int64_t first, std::size_t last) {
  V sum[count], product[count], centre[count];
  const auto width = [&](std::size_t k) { return k + 1 == count ? last : lanes; };
  const auto place = [&](std::size_t k) { return first + static_cast<std::int64_t>(k * lanes); };
  unrolled<count>([&](auto k) SUPERSTEP_INLINE_LAMBDA {
    sum[k] = product[k] = hn::Zero(f32_tag);
    centre[k] = load_first(b.centre + place(k), width(k));
  });
  for (std::int64_t row = 0; row < b.rows; ++row) {
    const float *a = b.a + row * b.a_stride, *other = b.b + row * b.b_stride;
    unrolled<count>([&](auto k) SUPERSTEP_INLINE_LAMBDA {
      const V x = load_first(a + place(k), width(k));
      if constexpr (moments) {
        const V difference = hn::Sub(x, centre[k]);
        sum[k] = hn::Add(sum[k], difference);
        product[k] = hn::MulAdd(difference, difference, product[k]);
      } else {
        const V y = load_first(other + place(k), width(k));
        sum[k] = hn::Add(sum[k], x);
        product[k] = hn::MulAdd(x, hn::Sub(y, centre[k]), product[k]);
      }
    });
  }
  unrolled<count>([&](auto k) SUPERSTEP_INLINE_LAMBDA {
    float *s = b.sum + place(k), *p = b.product + place(k);
    store_first(hn::Add(load_first(s, width(k)), sum[k]), s, width(k));
    store_first(hn::Add(load_first(p, width(k)), product[k]), p, width(k));
  });
}

template <bool moments>
void sum_block(const StatisticsBlock& b) {
  constexpr auto wide = static_cast<std::int64_t>(columns * lanes), one = static_cast<std::int64_t>(lanes);
  std::int64_t first = 0;
  for (; first + wide <= b.channels; first += wide) sum_columns<moments, columns>(b, first, lanes);
  for (; first < b.channels; first += one)
    sum_columns<moments, 1>(b, first, static_cast<std::size_t>(std::min(one, b.channels - first)));
}

StatisticsLoop* statistics_loop(bool moments) { return moments ? sum_block<true> : sum_block<false>; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(statistics_loop);

namespace {

// Rows whose sums are made apart and then joined: a block stays in the first-level cache, and rounding grows
// with the number of blocks rather than with that of rows.
constexpr std::int64_t block_elements = 8192, least_rows = 8, most_rows = 128;

class StatisticsKernel final : public Kernel {
 public:
  StatisticsKernel(KernelInfo info, const ChannelStatistics& s, bool moments)
      : Kernel(std::move(info)),
        s_(s),
        moments_(moments),
        loop_(SUPERSTEP_VECTOR_FUNCTION(statistics_loop)(moments)) {}

  void run(const Arguments& arguments) const override {
    const auto* a = static_cast<const float*>(arguments.inputs[0]);
    const auto* b = moments_ ? a : static_cast<const float*>(arguments.inputs[1]);
    const auto* centre = moments_ ? a : static_cast<const float*>(arguments.inputs[2]);
    auto* sum = static_cast<float*>(arguments.outputs[0]);
    auto* product = static_cast<float*>(arguments.outputs[1]);
    std::fill_n(sum, s_.channels, 0.0f);
    std::fill_n(product, s_.channels, 0.0f);
    const std::int64_t block = std::clamp(block_elements / s_.channels, least_rows, most_rows);
    for (std::int64_t row = 0; row < s_.rows; row += block)
      loop_({a + row * s_.a_stride, b + row * s_.b_stride, centre, sum, product,
             std::min(block, s_.rows - row), s_.channels, s_.a_stride, s_.b_stride});
    if (moments_) finish(centre, sum, product);
  }

 private:
  void finish(const float* centre, float* sum, float* product) const {
    const float scale = 1.0f / static_cast<float>(s_.rows);
    for (std::int64_t c = 0; c < s_.channels; ++c) {
      const float shift = sum[c] * scale;
      sum[c] = centre[c] + shift;
      const float variance = product[c] * scale - shift * shift;
      product[c] = variance < 0 ? 0 : variance;  // NaN stays
    }
  }

  ChannelStatistics s_;
  bool moments_;
  StatisticsLoop* loop_;
};

Prepared prepare(ChannelStatistics s, bool moments) {
  if (s.rows < 1 || s.channels < 1) return refuse("channel statistics", "there are no rows");
  if (s.a_stride == 0) s.a_stride = s.channels;
  if (s.b_stride == 0) s.b_stride = s.channels;
  const auto elements = static_cast<double>(s.rows * s.channels);
  KernelInfo info;
  info.name = fmt::format("channel {}, {} x {}", moments ? "moments" : "sums", s.rows, s.channels);
  info.flops = elements * 4;
  info.bytes = elements * (moments ? 4 : 8);
  info.inputs = moments ? 1 : 3;
  info.outputs = 2;
  return std::make_unique<StatisticsKernel>(std::move(info), s, moments);
}

}  // namespace

StatisticsLoop* centred_sum_loop() { return SUPERSTEP_VECTOR_FUNCTION(statistics_loop)(false); }

Prepared prepare_channel_moments(const ChannelStatistics& statistics) { return prepare(statistics, true); }
Prepared prepare_channel_sums(const ChannelStatistics& statistics) { return prepare(statistics, false); }

}  // namespace superstep::kernels
#endif
