// Tiles on bytes with AVX2, which has no product of u8 by i8 whose sums are exact: bytes become pairs of i16,
// whose products and sums of two are exact in i32. Of a quad of summed channels the even ones make one pair
// and the odd ones another: what the other order of instructions (four products at once, AVX-512 VNNI) gives
// is the same integer.
//
// Two products and two additions of 32 bytes where f32 has four fused ones: twice its rate where the
// additions find ports of their own.
#include "superstep/target/cpu/kernels/bytes/byte_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#define SUPERSTEP_AVX2_TARGET target("avx2,fma")
#define SUPERSTEP_AVX2 __attribute__((SUPERSTEP_AVX2_TARGET))
#define SUPERSTEP_AVX2_INLINE __attribute__((SUPERSTEP_AVX2_TARGET, always_inline)) inline
#define SUPERSTEP_AVX2_LAMBDA __attribute__((SUPERSTEP_AVX2_TARGET, always_inline))

namespace superstep::kernels {
namespace {

constexpr std::int64_t lanes8 = 8;  // channels of a vector

template <int... i, class Body>
SUPERSTEP_AVX2_INLINE void unrolled8(std::integer_sequence<int, i...> /*numbers*/, const Body& body) {
  (body(std::integral_constant<int, i>()), ...);
}
// body(0), body(1), ... body(n - 1) with constants, so that arrays they index stay in registers.
template <int n, class Body>
SUPERSTEP_AVX2_INLINE void unrolled8(const Body& body) {
  unrolled8(std::make_integer_sequence<int, n>(), body);
}

// The first `count` lanes.
SUPERSTEP_AVX2_INLINE __m256i first_lanes(std::int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Even and odd bytes as i16.
struct Pairs {
  __m256i even, odd;
};

SUPERSTEP_AVX2_INLINE Pairs signed_pairs(__m256i bytes) {
  return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)};
}

SUPERSTEP_AVX2_INLINE Pairs unsigned_pairs(const std::uint8_t* x) {
  std::int32_t four;
  std::memcpy(&four, x, sizeof four);
  const __m256i bytes = _mm256_set1_epi32(four);
  return {_mm256_and_si256(bytes, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(bytes, 8)};
}

SUPERSTEP_AVX2_INLINE __m256i added_products(__m256i sum, const Pairs& weights, const Pairs& x) {
  return _mm256_add_epi32(
      sum, _mm256_add_epi32(_mm256_madd_epi16(weights.even, x.even), _mm256_madd_epi16(weights.odd, x.odd)));
}

// M vectors of channels from one on; all full but the last, where `masked`.
template <int M, bool masked>
struct Vectors {
  std::int64_t channel;
  __m256i mask;

  SUPERSTEP_AVX2_INLINE __m256i load(const void* from, int i) const {
    const auto* at = static_cast<const int*>(from) + channel + lanes8 * i;
    if (masked && i == M - 1) return _mm256_maskload_epi32(at, mask);
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
  SUPERSTEP_AVX2_INLINE __m256 load_floats(const float* from, int i) const {
    return _mm256_castsi256_ps(load(from, i));
  }
};

// One quad of summed channels, of N columns. What there are fewer of stays in registers.
template <int M, int N, bool masked>
SUPERSTEP_AVX2_INLINE void add_quad8(__m256i (&sum)[M][N], const std::byte* weights, const std::uint8_t* x,
                                     std::int64_t stride, const Vectors<M, masked>& v) {
  if constexpr (M <= N) {
    Pairs w[M];
    unrolled8<M>([&](auto i) SUPERSTEP_AVX2_LAMBDA { w[i] = signed_pairs(v.load(weights, i)); });
    unrolled8<N>([&](auto j) SUPERSTEP_AVX2_LAMBDA {
      const Pairs column = unsigned_pairs(x + j * stride);
      unrolled8<M>([&](auto i)
                       SUPERSTEP_AVX2_LAMBDA { sum[i][j] = added_products(sum[i][j], w[i], column); });
    });
  } else {
    Pairs column[N];
    unrolled8<N>([&](auto j) SUPERSTEP_AVX2_LAMBDA { column[j] = unsigned_pairs(x + j * stride); });
    unrolled8<M>([&](auto i) SUPERSTEP_AVX2_LAMBDA {
      const Pairs w = signed_pairs(v.load(weights, i));
      unrolled8<N>([&](auto j)
                       SUPERSTEP_AVX2_LAMBDA { sum[i][j] = added_products(sum[i][j], w, column[j]); });
    });
  }
}

// Some bytes, eight at most, as f32.
SUPERSTEP_AVX2_INLINE __m256 widened8(const std::uint8_t* from, std::int64_t count) {
  std::int64_t bytes = 0;
  std::memcpy(&bytes, from, static_cast<std::size_t>(count));
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes)));
}

// To nearest, halves to even, limited to 0..255; NaN, which min() hands on, becomes 0.
SUPERSTEP_AVX2_INLINE void store_bytes8(__m256 v, __m256 inverse_scale, __m256i zero_point, std::uint8_t* to,
                                        std::int64_t count) {
  const __m256 scaled = _mm256_min_ps(_mm256_set1_ps(1024), _mm256_mul_ps(v, inverse_scale));
  const __m256i whole =
      _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_max_ps(_mm256_set1_ps(-1024), scaled)), zero_point);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
  const std::int64_t bytes = _mm_cvtsi128_si64(_mm_packus_epi16(words, words));
  std::memcpy(to, &bytes, static_cast<std::size_t>(count));
}

SUPERSTEP_AVX2_INLINE __m256 hard_swish8(__m256 v) {
  const __m256 gate = _mm256_fmadd_ps(v, _mm256_set1_ps(1.0f / 6), _mm256_set1_ps(0.5f));
  return _mm256_mul_ps(v, _mm256_min_ps(_mm256_max_ps(gate, _mm256_setzero_ps()), _mm256_set1_ps(1)));
}

// The sums of a block of M vectors and N columns, and what is done to them, in registers.
template <class T, Addend addend, int M, int N, bool masked>
SUPERSTEP_AVX2_INLINE void block8(const ByteTile& t, const IntegerBlock& b, std::int64_t channel,
                                  std::int64_t column) {
  const std::int64_t last = masked ? b.channels - channel - lanes8 * (M - 1) : lanes8;
  const Vectors<M, masked> v{channel, first_lanes(last)};
  __m256i sum[M][N];
  unrolled8<M>([&](auto i) SUPERSTEP_AVX2_LAMBDA {
    const __m256i start = _mm256_sub_epi32(_mm256_setzero_si256(), v.load(b.shift, i));
    unrolled8<N>([&](auto j) SUPERSTEP_AVX2_LAMBDA { sum[i][j] = start; });
  });
  const std::int64_t row_bytes = 4 * b.channels;
  for (std::uint64_t tap = 0; tap < t.taps; ++tap) {
    const std::byte* weights = t.weights + t.weight_offsets[tap];
    const std::uint8_t* x = t.x + t.source_offsets[tap] + column * t.column_stride;
    for (std::int64_t quad = 0; quad < t.quads; ++quad, x += 4, weights += row_bytes)
      add_quad8<M, N, masked>(sum, weights, x, t.column_stride, v);
  }
  const __m256 slope = _mm256_set1_ps(b.slope), inverse = _mm256_set1_ps(b.inverse_scale);
  const __m256i zero_point = _mm256_set1_epi32(static_cast<std::int32_t>(b.zero_point));
  T* to = static_cast<T*>(b.result) + column * b.result_stride + channel;
  const float* added = addend == Addend::floats ? b.added + column * b.added_stride : nullptr;
  const std::uint8_t* bytes =
      addend == Addend::bytes ? b.added_bytes + column * b.added_stride + channel : nullptr;
  const __m256 added_scale = _mm256_set1_ps(b.added_scale);
  const __m256 added_shift = _mm256_set1_ps(b.added_zero * b.added_scale);
  const IntegerBlock at = b;  // results in bytes may lie anywhere, as far as the compiler knows
  unrolled8<M>([&](auto i) SUPERSTEP_AVX2_LAMBDA {
    const __m256 scale = v.load_floats(at.scale, i);
    const __m256 bias = _mm256_sub_ps(at.bias ? v.load_floats(at.bias, i) : _mm256_setzero_ps(), added_shift);
    unrolled8<N>([&](auto j) SUPERSTEP_AVX2_LAMBDA {
      __m256 y = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i][j]), scale, bias);
      const bool part = masked && i == M - 1;
      if constexpr (addend == Addend::floats)
        y = _mm256_add_ps(y, v.load_floats(added + j * at.added_stride, i));
      if constexpr (addend == Addend::bytes)
        y = _mm256_fmadd_ps(widened8(bytes + j * at.added_stride + lanes8 * i, part ? last : lanes8),
                            added_scale, y);
      // The larger one of y and slope * y is the rectifier, for slopes from 0 to 1.
      y = at.hard_swish ? hard_swish8(y) : _mm256_max_ps(_mm256_mul_ps(y, slope), y);
      T* place = to + j * at.result_stride + lanes8 * i;
      if constexpr (sizeof(T) == 1)
        store_bytes8(y, inverse, zero_point, place, part ? last : lanes8);
      else if (part)
        _mm256_maskstore_ps(place, v.mask, y);
      else
        _mm256_storeu_ps(place, y);
    });
  });
}

template <class T, Addend addend, int M, int N>
SUPERSTEP_AVX2 void block8(const ByteTile& t, const IntegerBlock& b, std::int64_t channel,
                           std::int64_t column) {
  if (channel + lanes8 * M <= b.channels)
    block8<T, addend, M, N, false>(t, b, channel, column);
  else
    block8<T, addend, M, N, true>(t, b, channel, column);
}

// Blocks of N columns, then of half as many, and so on; the sums of each fill the registers.
template <class T, Addend addend, int M, int N, int... rest>
SUPERSTEP_AVX2_INLINE void columns8(const ByteTile& t, const IntegerBlock& b, std::int64_t channel,
                                    std::int64_t column) {
  for (; column + N <= b.columns; column += N) block8<T, addend, M, N>(t, b, channel, column);
  if constexpr (sizeof...(rest) > 0) columns8<T, addend, M, rest...>(t, b, channel, column);
}

// Of few columns as many channels at a time as there are registers: weights are then read once, in their
// order.
template <class T, Addend addend, int M, int N>
SUPERSTEP_AVX2_INLINE std::int64_t channels8(const ByteTile& t, const IntegerBlock& b, std::int64_t channel,
                                             std::int64_t column) {
  for (; channel + lanes8 * (M - 1) < b.channels; channel += lanes8 * M)
    block8<T, addend, M, N>(t, b, channel, column);
  return channel;
}

template <class T, Addend addend>
SUPERSTEP_AVX2 void panel8(const ByteTile& t, const IntegerBlock& b) {
  std::int64_t channel = 0;
  if (b.columns == 1) channel = channels8<T, addend, 8, 1>(t, b, channel, 0);
  if (b.columns == 2) channel = channels8<T, addend, 4, 2>(t, b, channel, 0);
  for (; channel + lanes8 < b.channels; channel += 2 * lanes8)
    columns8<T, addend, 2, 4, 2, 1>(t, b, channel, 0);
  if (channel < b.channels) columns8<T, addend, 1, 8, 4, 2, 1>(t, b, channel, 0);
}

template <class T>
SUPERSTEP_AVX2 void tile8(const ByteTile& t, const IntegerBlock& b) {
  if (b.added_bytes) return panel8<T, Addend::bytes>(t, b);
  b.added ? panel8<T, Addend::floats>(t, b) : panel8<T, Addend::none>(t, b);
}

}  // namespace

ByteTileFunction* avx2_byte_tile_as_f32() { return tile8<float>; }
ByteTileFunction* avx2_byte_tile_as_bytes() { return tile8<std::uint8_t>; }

}  // namespace superstep::kernels

#else

namespace superstep::kernels {

ByteTileFunction* avx2_byte_tile_as_f32() { return nullptr; }
ByteTileFunction* avx2_byte_tile_as_bytes() { return nullptr; }

}  // namespace superstep::kernels

#endif
