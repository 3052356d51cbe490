#include "superstep/target/cpu/kernels/bytes/integer_finish.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/bytes/integer_finish.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// Calls body(channel, n) for the vectors of a column: n channels from `channel` on, all full but the last.
template <class Body>
HWY_INLINE void for_each_vector(std::int64_t channels, const Body& body) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t channel = 0;
  for (; channel + width <= channels; channel += width) body(channel, lanes);
  if (channel < channels) body(channel, static_cast<std::size_t>(channels - channel));
}

HWY_INLINE VI load_integers(const std::int32_t* p, std::size_t n) {
  if (n == lanes) return hn::LoadU(i32_tag, p);
  alignas(64) std::int32_t buffer[lanes] = {};
  std::memcpy(buffer, p, n * sizeof(std::int32_t));
  return hn::Load(i32_tag, buffer);
}

// To nearest, halves to even; what is too low for 32 bits, and NaN, becomes a large negative number.
HWY_INLINE VI nearest_integer(V v) {
#if HWY_TARGET == HWY_AVX3
  return VI{_mm512_cvtps_epi32(v.raw)};
#else
  return hn::NearestInt(hn::Max(v, constant(-1024)));
#endif
}

// round(v * inverse_scale) + zero_point as a byte, for the first n lanes. Rounding and narrowing are single
// instructions; the limit keeps what is converted within 32 bits; NaN becomes the lowest byte.
HWY_INLINE void store_bytes(V v, V inverse_scale, VI zero_point, std::uint8_t* p, std::size_t n) {
  const V scaled = min_or_second(constant(1024), hn::Mul(v, inverse_scale));
  const hn::Rebind<std::uint8_t, F> bytes;
  const auto packed = hn::DemoteTo(bytes, hn::Add(nearest_integer(scaled), zero_point));
  if (n == lanes) return hn::StoreU(packed, bytes, p);
  alignas(64) std::uint8_t buffer[lanes];
  hn::StoreU(packed, bytes, buffer);
  std::memcpy(p, buffer, n);
}

// G vectors of channels of all columns; `n` channels in each.
template <class T, Addend addend, std::size_t G>
HWY_INLINE void finish_columns(const IntegerBlock& b, std::int64_t channel, std::size_t n) {
  const V slope = constant(b.slope), inverse = constant(b.inverse_scale), none = hn::Zero(f32_tag);
  const VI zero = hn::Set(i32_tag, static_cast<std::int32_t>(b.zero_point));
  VI shift[G];
  V scale[G], bias[G];
  unrolled<G>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
    const std::int64_t at = channel + static_cast<std::int64_t>(i * lanes);
    shift[i] = load_integers(b.shift + at, n);
    scale[i] = load_first(b.scale + at, n);
    bias[i] = b.bias ? load_first(b.bias + at, n) : none;
  });
  const std::int32_t* sums = b.sums + channel;
  const float* added = addend == Addend::floats ? b.added + channel : nullptr;
  const std::uint8_t* bytes = addend == Addend::bytes ? b.added_bytes + channel : nullptr;
  const V added_scale = constant(b.added_scale), added_zero = constant(b.added_zero);
  T* result = static_cast<T*>(b.result) + channel;
  for (std::int64_t column = 0; column < b.columns; ++column) {
    unrolled<G>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      V v = hn::ConvertTo(f32_tag, hn::Sub(load_integers(sums + i * lanes, n), shift[i]));
      v = hn::Add(hn::Mul(v, scale[i]), bias[i]);
      if constexpr (addend == Addend::floats) v = hn::Add(v, load_first(added + i * lanes, n));
      if constexpr (addend == Addend::bytes)
        v = hn::Add(v, hn::Mul(hn::Sub(load_first(bytes + i * lanes, n), added_zero), added_scale));
      v = b.hard_swish ? hard_swish(v) : hn::Add(hn::Max(v, none), hn::Mul(hn::Min(v, none), slope));
      if constexpr (sizeof(T) == 1)
        store_bytes(v, inverse, zero, result + i * lanes, n);
      else
        store_first(v, result + i * lanes, n);
    });
    sums += b.channels;
    result += b.result_stride;
    if constexpr (addend == Addend::floats) added += b.added_stride;
    if constexpr (addend == Addend::bytes) bytes += b.added_stride;
  }
}

// Four vectors at a time: a column of 64 channels is one piece of memory.
template <class T, Addend addend>
void finish_channels(const IntegerBlock& b) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t channel = 0;
  for (; channel + 4 * width <= b.channels; channel += 4 * width)
    finish_columns<T, addend, 4>(b, channel, lanes);
  for (; channel + width <= b.channels; channel += width) finish_columns<T, addend, 1>(b, channel, lanes);
  if (channel < b.channels)
    finish_columns<T, addend, 1>(b, channel, static_cast<std::size_t>(b.channels - channel));
}

template <class T>
void finish(const IntegerBlock& b) {
  if (b.added_bytes) return finish_channels<T, Addend::bytes>(b);
  b.added ? finish_channels<T, Addend::floats>(b) : finish_channels<T, Addend::none>(b);
}

void quantize(const QuantizeBlock& b) {
  const V inverse = constant(b.inverse_scale);
  const VI zero = hn::Set(i32_tag, static_cast<std::int32_t>(b.zero_point));
  for (std::int64_t column = 0; column < b.columns; ++column) {
    const float* values = b.values + column * b.value_stride;
    std::uint8_t* result = b.result + column * b.result_stride;
    for_each_vector(b.channels, [&](std::int64_t channel, std::size_t n) HWY_ATTR {
      store_bytes(load_first(values + channel, n), inverse, zero, result + channel, n);
    });
  }
}

IntegerFinish* finish_f32() { return finish<float>; }
IntegerFinish* finish_u8() { return finish<std::uint8_t>; }
QuantizeFunction* quantize_u8() { return quantize; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(finish_f32);
HWY_EXPORT(finish_u8);
HWY_EXPORT(quantize_u8);

IntegerFinish* finish_as_f32() { return SUPERSTEP_VECTOR_FUNCTION(finish_f32)(); }
IntegerFinish* finish_as_bytes() { return SUPERSTEP_VECTOR_FUNCTION(finish_u8)(); }
QuantizeFunction* quantize_block() { return SUPERSTEP_VECTOR_FUNCTION(quantize_u8)(); }

}  // namespace superstep::kernels
#endif
