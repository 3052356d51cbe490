#include "superstep/target/cpu/kernels/move/grid_sample_loops.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/move/grid_sample_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto width = static_cast<std::int64_t>(lanes);
using Padding = GridSample::Padding;

// One axis: from [-1, 1] to elements, and what lies outside.
struct SampledAxis {
  float extent;
  bool align_corners;
  Padding padding;

  HWY_INLINE V last() const { return constant(extent - 1); }
  HWY_INLINE float low() const { return align_corners ? 0.0f : -0.5f; }
  HWY_INLINE float range() const { return align_corners ? extent - 1 : extent; }

  HWY_INLINE V position(V coordinate, bool nearest) const {
    const V one = constant(1), half = constant(0.5f);
    const V shifted = hn::Add(coordinate, one);
    V x = align_corners ? hn::Mul(shifted, constant((extent - 1) / 2))
                        : hn::Mul(hn::Sub(hn::Mul(shifted, constant(extent)), one), half);
    if (nearest) x = hn::Round(x);
    return padding == Padding::zeros ? x : inside(x);
  }

  // Border: the nearest element; reflection: back and forth between the borders.
  HWY_INLINE V inside(V x) const {
    const V lowest = constant(low()), highest = constant(low() + range());
    const auto within = hn::And(hn::Ge(x, lowest), hn::Le(x, highest));
    return hn::IfThenElse(within, x, moved(x));
  }
  HWY_INLINE V moved(V x) const {
    if (padding == Padding::border || range() == 0) return clamped(x);
    const V whole = constant(range()), distance = hn::Abs(hn::Sub(x, constant(low())));
    const V times = hn::Floor(hn::Mul(distance, constant(0.5f / range())));
    const V folded = hn::NegMulAdd(times, constant(2 * range()), distance);
    return hn::Add(hn::Sub(whole, hn::Abs(hn::Sub(folded, whole))), constant(low()));
  }
  // NaN becomes 0.
  HWY_INLINE V clamped(V x) const {
    return hn::Min(last(), hn::IfThenElse(hn::Ge(x, constant(0)), x, constant(0)));
  }

  // The element of a tap, and what is left of its weight.
  HWY_INLINE VI element(V index, V& weight) const {
    if (padding == Padding::zeros)
      weight = hn::IfThenElseZero(hn::And(hn::Ge(index, constant(0)), hn::Le(index, last())), weight);
    else if (padding == Padding::reflection)
      index = inside(index);
    return hn::ConvertTo(i32_tag, clamped(index));
  }
};

struct SampledTaps {
  VI element[2];
  V weight[2];
};

HWY_INLINE SampledTaps taps_of(const SampledAxis& axis, V coordinate, bool nearest) {
  SampledTaps taps;
  const V position = axis.position(coordinate, nearest), one = constant(1);
  const V lower = nearest ? position : hn::Floor(position), share = hn::Sub(position, lower);
  taps.weight[0] = nearest ? one : hn::Sub(one, share);
  taps.weight[1] = share;
  taps.element[0] = axis.element(lower, taps.weight[0]);
  taps.element[1] = axis.element(hn::Add(lower, one), taps.weight[1]);
  return taps;
}

void find_places(const GridSample& s, std::int64_t count, const float* along_width, const float* along_height,
                 SampledPlaces& places) {
  const SampledAxis across{static_cast<float>(s.width), s.align_corners, s.padding},
      down{static_cast<float>(s.height), s.align_corners, s.padding};
  const VI row = hn::Set(i32_tag, static_cast<std::int32_t>(s.x.row)),
           column = hn::Set(i32_tag, static_cast<std::int32_t>(s.x.column));
  const std::size_t taps = s.nearest ? 1 : 2;  // of an axis
  for (std::int64_t i = 0; i < count; i += width) {
    const SampledTaps x = taps_of(across, load(along_width + i), s.nearest),
                      y = taps_of(down, load(along_height + i), s.nearest);
    for (std::size_t a = 0; a < taps; ++a)
      for (std::size_t b = 0; b < taps; ++b) {
        const std::size_t tap = a * taps + b;
        const VI offset = hn::Add(hn::Mul(y.element[a], row), hn::Mul(x.element[b], column));
        hn::StoreU(offset, i32_tag, places.offset[tap] + i);
        store(hn::Mul(y.weight[a], x.weight[b]), places.weight[tap] + i);
      }
  }
}

// Points side by side, channel by channel.
template <std::size_t taps>
HWY_INLINE void read_points(const GridSample& s, const SampledPlaces& places, std::int64_t count,
                            const float* x, float* y) {
  for (std::int64_t c = 0; c < s.channels; ++c, x += s.x.channel, y += s.y.channel)
    for (std::int64_t i = 0; i < count; i += width) {
      V sum = hn::Zero(f32_tag);
      unrolled<taps>([&](auto t) SUPERSTEP_INLINE_LAMBDA {
        const VI offset = hn::LoadU(i32_tag, places.offset[t] + i);
        sum = hn::MulAdd(load(places.weight[t] + i), hn::GatherIndex(f32_tag, x, offset), sum);
      });
      const std::int64_t here = std::min(width, count - i);
      if (s.y.column == 1) {
        store_first(sum, y + i, static_cast<std::size_t>(here));
        continue;
      }
      alignas(64) float points[lanes];
      store(sum, points);
      for (std::int64_t k = 0; k < here; ++k) y[(i + k) * s.y.column] = points[k];
    }
}

// Channels side by side, point by point.
template <std::size_t taps>
HWY_INLINE void read_channels(const GridSample& s, const SampledPlaces& places, std::int64_t count,
                              const float* x, float* y) {
  for (std::int64_t i = 0; i < count; ++i, y += s.y.column)
    for (std::int64_t c = 0; c < s.channels; c += width) {
      const auto here = static_cast<std::size_t>(std::min(width, s.channels - c));
      V sum = hn::Zero(f32_tag);
      unrolled<taps>([&](auto t) SUPERSTEP_INLINE_LAMBDA {
        sum = hn::MulAdd(constant(places.weight[t][i]), load_first(x + places.offset[t][i] + c, here), sum);
      });
      store_first(sum, y + c, here);
    }
}

void read_places(const GridSample& s, const SampledPlaces& places, std::int64_t count, const float* x,
                 float* y) {
  const bool by_channel = s.x.channel == 1 && s.y.channel == 1 && s.channels > 2;
  if (by_channel)
    s.nearest ? read_channels<1>(s, places, count, x, y) : read_channels<4>(s, places, count, x, y);
  else
    s.nearest ? read_points<1>(s, places, count, x, y) : read_points<4>(s, places, count, x, y);
}

GridSampleLoops loops_of_grid_sample() { return {find_places, read_places}; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(loops_of_grid_sample);

GridSampleLoops grid_sample_loops() { return SUPERSTEP_VECTOR_FUNCTION(loops_of_grid_sample)(); }

}  // namespace superstep::kernels
#endif
