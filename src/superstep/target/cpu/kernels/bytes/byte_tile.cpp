#include "superstep/target/cpu/kernels/bytes/byte_tile.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "superstep/target/cpu/kernels/core/instruction_set.h"

#if defined(__x86_64__)
// GCC warns of the registers that its own header leaves undefined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#define SUPERSTEP_VNNI_TARGET target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")
#define SUPERSTEP_VNNI __attribute__((SUPERSTEP_VNNI_TARGET))
#define SUPERSTEP_VNNI_INLINE __attribute__((SUPERSTEP_VNNI_TARGET, always_inline)) inline
#define SUPERSTEP_VNNI_LAMBDA __attribute__((SUPERSTEP_VNNI_TARGET, always_inline))

namespace superstep::kernels {
namespace {

constexpr std::int64_t width = 16;       // channels of a vector
constexpr std::int64_t quads_ahead = 4;  // a step of the unrolled loop

// body(0), body(1), ... body(n - 1) with constants, so that arrays they index stay in registers.
template <int... i, class Body>
SUPERSTEP_VNNI_INLINE void unrolled(std::integer_sequence<int, i...> /*numbers*/, const Body& body) {
  (body(std::integral_constant<int, i>()), ...);
}
template <int n, class Body>
SUPERSTEP_VNNI_INLINE void unrolled(const Body& body) {
  unrolled(std::make_integer_sequence<int, n>(), body);
}

// M vectors of channels of N columns. Where these are few, each sum is made in S parts: a dot product
// takes four cycles or more, and two of them could begin in every cycle.
template <int M, int N>
struct Sums {
  static constexpr int S = M * N >= 8 ? 1 : M * N >= 4 ? 2 : 4;
  __m512i part[S][M][N];
};

// The first channels of a vector; all of them, but of the last vector of a panel.
template <int M>
SUPERSTEP_VNNI_INLINE __mmask16 lanes_of(int i, __mmask16 last) {
  return i == M - 1 ? last : static_cast<__mmask16>(0xffff);
}

// One quad of summed channels; `at(j)`: where column j has it.
template <int M, int N, class At>
SUPERSTEP_VNNI_INLINE void add_quad(__m512i (&sum)[M][N], const std::byte* weights, const At& at,
                                    __mmask16 last) {
  __m512i a[M];
  unrolled<M>([&](auto i) SUPERSTEP_VNNI_LAMBDA {
    a[i] = _mm512_maskz_loadu_epi32(lanes_of<M>(i, last), weights + 64 * i);
  });
  unrolled<N>([&](auto j) SUPERSTEP_VNNI_LAMBDA {
    std::int32_t four;
    std::memcpy(&four, at(j), sizeof four);
    const __m512i b = _mm512_set1_epi32(four);
    unrolled<M>([&](auto i) SUPERSTEP_VNNI_LAMBDA { sum[i][j] = _mm512_dpbusd_epi32(sum[i][j], b, a[i]); });
  });
}

template <int M, int N>
SUPERSTEP_VNNI_INLINE void add_tap(Sums<M, N>& sums, const ByteTile& t, const std::byte* weights,
                                   const std::uint8_t* x, std::int64_t row_bytes, __mmask16 last) {
  constexpr int S = Sums<M, N>::S;
  std::int64_t quad = 0;
  const std::int64_t stride = t.column_stride;
  const auto add = [&](auto& sum, const std::uint8_t* first) SUPERSTEP_VNNI_LAMBDA {
    add_quad(
        sum, weights, [&](auto j) SUPERSTEP_VNNI_LAMBDA { return first + j * stride; }, last);
    weights += row_bytes;
  };
  for (; quad + quads_ahead <= t.quads; quad += quads_ahead, x += 4 * quads_ahead)
    unrolled<quads_ahead>([&](auto u) SUPERSTEP_VNNI_LAMBDA { add(sums.part[u % S], x + 4 * u); });
  for (; quad < t.quads; ++quad, x += 4) add(sums.part[0], x);
}

// Sums that were made in parts.
template <int M, int N>
SUPERSTEP_VNNI_INLINE void join_parts(Sums<M, N>& sums) {
  unrolled<(Sums<M, N>::S - 1) * M * N>([&](auto at) SUPERSTEP_VNNI_LAMBDA {
    constexpr int s = 1 + at / (M * N), i = at / N % M, j = at % N;
    sums.part[0][i][j] = _mm512_add_epi32(sums.part[0][i][j], sums.part[s][i][j]);
  });
}

// The same as add_tap where every column has an address of its own.
template <int M, int N>
SUPERSTEP_VNNI_INLINE void add_gathered_tap(Sums<M, N>& sums, const GatheredTile& t, const std::byte* weights,
                                            const std::uint8_t* const* columns, std::int64_t row_bytes,
                                            __mmask16 last, const std::byte*& ahead) {
  constexpr int S = Sums<M, N>::S;
  const std::uint8_t* x[N];
  unrolled<N>([&](auto j) SUPERSTEP_VNNI_LAMBDA { x[j] = columns[j] + t.first_byte; });
  const auto add = [&](auto& sum, std::int64_t at) SUPERSTEP_VNNI_LAMBDA {
    add_quad(
        sum, weights, [&](auto j) SUPERSTEP_VNNI_LAMBDA { return x[j] + at; }, last);
    weights += row_bytes;
  };
  std::int64_t quad = 0;
  for (; quad + quads_ahead <= t.quads; quad += quads_ahead) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
    _mm_prefetch(reinterpret_cast<const char*>(ahead + 64), _MM_HINT_T1);
    ahead += 128;
    unrolled<quads_ahead>([&](auto u) SUPERSTEP_VNNI_LAMBDA { add(sums.part[u % S], 4 * (quad + u)); });
  }
  for (; quad < t.quads; ++quad) add(sums.part[0], 4 * quad);
}

// The sums, less the zero point's share.
template <int M, int N>
SUPERSTEP_VNNI_INLINE void sum_up(Sums<M, N>& sums, const ByteTile& t, const IntegerBlock& b,
                                  std::int64_t column, __mmask16 last) {
  constexpr int S = Sums<M, N>::S;
  const __m512i none = _mm512_setzero_si512();
  unrolled<M>([&](auto i) SUPERSTEP_VNNI_LAMBDA {
    const __m512i shift = _mm512_maskz_loadu_epi32(lanes_of<M>(i, last), b.shift + width * i);
    unrolled<N>([&](auto j) SUPERSTEP_VNNI_LAMBDA {
      sums.part[0][i][j] = _mm512_sub_epi32(none, shift);
      unrolled<S - 1>([&](auto s) SUPERSTEP_VNNI_LAMBDA { sums.part[s + 1][i][j] = none; });
    });
  });
  for (std::uint64_t tap = 0; tap < t.taps; ++tap)
    add_tap(sums, t, t.weights + t.weight_offsets[tap],
            t.x + t.source_offsets[tap] + column * t.column_stride, 4 * b.channels, last);
  join_parts(sums);
}

// The same of gathered columns; sums go on from those that are there.
template <int M, int N>
SUPERSTEP_VNNI_INLINE void sum_up(Sums<M, N>& sums, const GatheredTile& t, const IntegerBlock& b,
                                  std::int64_t column, __mmask16 last) {
  constexpr int S = Sums<M, N>::S;
  const __m512i none = _mm512_setzero_si512();
  unrolled<M>([&](auto i) SUPERSTEP_VNNI_LAMBDA {
    const __mmask16 mask = lanes_of<M>(i, last);
    const __m512i start = _mm512_sub_epi32(none, _mm512_maskz_loadu_epi32(mask, b.shift + width * i));
    unrolled<N>([&](auto j) SUPERSTEP_VNNI_LAMBDA {
      sums.part[0][i][j] =
          t.goes_on ? _mm512_maskz_loadu_epi32(mask, b.sums + (column + j) * b.channels + width * i) : start;
      unrolled<S - 1>([&](auto s) SUPERSTEP_VNNI_LAMBDA { sums.part[s + 1][i][j] = none; });
    });
  });
  const std::byte* ahead = t.ahead + column * t.ahead_per_column;
  for (std::int64_t tap = 0; tap < t.taps; ++tap)
    add_gathered_tap(sums, t, t.weights + tap * t.tap_bytes, t.columns + tap * t.columns_stride + column,
                     4 * b.channels, last, ahead);
  join_parts(sums);
}

// What is done to every sum, in registers: results in bytes may lie anywhere as far as the compiler knows,
// and would have it read all of this again after each.
template <int M>
struct Finish {
  __m512 scale[M], bias[M], slope, inverse_scale, added_scale;
  __m512i zero_point;
  __mmask16 last;
};

template <int M>
SUPERSTEP_VNNI_INLINE Finish<M> finish_of(const IntegerBlock& b, __mmask16 last) {
  Finish<M> f;
  unrolled<M>([&](auto i) SUPERSTEP_VNNI_LAMBDA {
    const __mmask16 mask = lanes_of<M>(i, last);
    f.scale[i] = _mm512_maskz_loadu_ps(mask, b.scale + width * i);
    const __m512 bias = b.bias ? _mm512_maskz_loadu_ps(mask, b.bias + width * i) : _mm512_setzero_ps();
    f.bias[i] = _mm512_sub_ps(bias, _mm512_set1_ps(b.added_zero * b.added_scale));
  });
  f.added_scale = _mm512_set1_ps(b.added_scale);
  f.slope = _mm512_set1_ps(b.slope);
  f.inverse_scale = _mm512_set1_ps(b.inverse_scale);
  f.zero_point = _mm512_set1_epi32(static_cast<std::int32_t>(b.zero_point));
  f.last = last;
  return f;
}

// Bytes as f32, for the lanes of the mask; the others are not read.
SUPERSTEP_VNNI_INLINE __m512 widened(const std::uint8_t* from, __mmask16 mask) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, from)));
}

// The larger one of v and slope * v is the rectifier, for slopes from 0 to 1.
SUPERSTEP_VNNI_INLINE __m512 rectified(__m512 v, __m512 slope) {
  return _mm512_max_ps(_mm512_mul_ps(v, slope), v);
}

SUPERSTEP_VNNI_INLINE __m512 hard_swish(__m512 v) {
  const __m512 gate = _mm512_fmadd_ps(v, _mm512_set1_ps(1.0f / 6), _mm512_set1_ps(0.5f));
  return _mm512_mul_ps(v, _mm512_min_ps(_mm512_max_ps(gate, _mm512_setzero_ps()), _mm512_set1_ps(1)));
}

// To nearest, halves to even, not yet limited to bytes; NaN, which min() hands on, becomes very low.
template <int M>
SUPERSTEP_VNNI_INLINE __m512i rounded(__m512 v, const Finish<M>& f) {
  const __m512 scaled = _mm512_min_ps(_mm512_set1_ps(1024), _mm512_mul_ps(v, f.inverse_scale));
  return _mm512_add_epi32(_mm512_cvtps_epi32(scaled), f.zero_point);
}

// Limited to 0..255. Narrowing takes pairs of vectors within blocks of four lanes: a permutation puts these
// in order again.
template <int M>
SUPERSTEP_VNNI_INLINE void store_bytes(const __m512i (&v)[M], std::uint8_t* to, __mmask16 last) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const bool full = last == 0xffff;
  if constexpr (M == 4) {
    const __m512i bytes = _mm512_packus_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
    const __mmask64 kept = (std::uint64_t{last} << 48) | 0xffffffffffffULL;
    const __m512i ordered = _mm512_permutexvar_epi32(order, bytes);
    return full ? _mm512_storeu_si512(to, ordered) : _mm512_mask_storeu_epi8(to, kept, ordered);
  } else if constexpr (M == 2) {
    const __m512i words = _mm512_packs_epi32(v[0], v[1]);
    const __m256i ordered =
        _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, _mm512_packus_epi16(words, words)));
    const __mmask32 kept = (std::uint32_t{last} << 16) | 0xffffU;
    return full ? _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), ordered)
                : _mm256_mask_storeu_epi8(to, kept, ordered);
  } else {
    unrolled<M>([&](auto i) SUPERSTEP_VNNI_LAMBDA {
      const __m128i bytes = _mm512_cvtusepi32_epi8(_mm512_max_epi32(v[i], _mm512_setzero_si512()));
      _mm_mask_storeu_epi8(to + width * i, lanes_of<M>(i, last), bytes);
    });
  }
}

template <int M>
SUPERSTEP_VNNI_INLINE void store(const __m512 (&v)[M], const Finish<M>& f, float* to) {
  unrolled<M>([&](auto i) SUPERSTEP_VNNI_LAMBDA {
    _mm512_mask_storeu_ps(to + width * i, lanes_of<M>(i, f.last), v[i]);
  });
}
template <int M>
SUPERSTEP_VNNI_INLINE void store(const __m512 (&v)[M], const Finish<M>& f, std::uint8_t* to) {
  __m512i whole[M];
  unrolled<M>([&](auto i) SUPERSTEP_VNNI_LAMBDA { whole[i] = rounded(v[i], f); });
  store_bytes<M>(whole, to, f.last);
}

// Sums that more is added to, in memory.
template <int M, int N>
SUPERSTEP_VNNI_INLINE void keep(const Sums<M, N>& sums, const IntegerBlock& b, std::int64_t column,
                                __mmask16 last) {
  unrolled<N>([&](auto j) SUPERSTEP_VNNI_LAMBDA {
    std::int32_t* to = static_cast<std::int32_t*>(b.result) + (column + j) * b.channels;
    unrolled<M>([&](auto i) SUPERSTEP_VNNI_LAMBDA {
      _mm512_mask_storeu_epi32(to + width * i, lanes_of<M>(i, last), sums.part[0][i][j]);
    });
  });
}

// What a result ends with.
enum class Ending : std::uint8_t { rectifier, hard_swish };

template <class T, Addend addend, Ending ending, int M, int N, class Operands>
SUPERSTEP_VNNI void block(const Operands& t, const IntegerBlock& b, std::int64_t column, __mmask16 last) {
  Sums<M, N> sums;
  sum_up(sums, t, b, column, last);
  if constexpr (std::is_same_v<T, std::int32_t>) {
    keep(sums, b, column, last);
  } else {
    const Finish<M> f = finish_of<M>(b, last);
    T* to = static_cast<T*>(b.result) + column * b.result_stride;
    const float* added = addend == Addend::floats ? b.added + column * b.added_stride : nullptr;
    const std::uint8_t* bytes = addend == Addend::bytes ? b.added_bytes + column * b.added_stride : nullptr;
    const std::int64_t stride = b.result_stride, added_stride = b.added_stride;
    unrolled<N>([&](auto j) SUPERSTEP_VNNI_LAMBDA {
      __m512 v[M];
      unrolled<M>([&](auto i) SUPERSTEP_VNNI_LAMBDA {
        v[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums.part[0][i][j]), f.scale[i], f.bias[i]);
        const __mmask16 mask = lanes_of<M>(i, last);
        if constexpr (addend == Addend::floats)
          v[i] = _mm512_add_ps(v[i], _mm512_maskz_loadu_ps(mask, added + j * added_stride + width * i));
        if constexpr (addend == Addend::bytes)
          v[i] = _mm512_fmadd_ps(widened(bytes + j * added_stride + width * i, mask), f.added_scale, v[i]);
        v[i] = ending == Ending::hard_swish ? hard_swish(v[i]) : rectified(v[i], f.slope);
      });
      store(v, f, to + j * stride);
    });
  }
}

// As many columns at a time as there are registers for their sums, then half as many, and so on.
template <class T, Addend addend, Ending ending, int M, int N, int... rest, class Operands>
SUPERSTEP_VNNI void columns(const Operands& t, const IntegerBlock& b, std::int64_t column, __mmask16 last) {
  for (; column + N <= b.columns; column += N) block<T, addend, ending, M, N>(t, b, column, last);
  if constexpr (sizeof...(rest) > 0)
    if (column < b.columns) columns<T, addend, ending, M, rest...>(t, b, column, last);
}

template <class T, Addend addend, Ending ending>
SUPERSTEP_VNNI void panel(const ByteTile& t, const IntegerBlock& b) {
  const auto spare = static_cast<int>((width - b.channels % width) % width);
  const auto last = static_cast<__mmask16>(0xffff >> spare);
  switch ((b.channels + width - 1) / width) {
    case 1: return columns<T, addend, ending, 1, 24, 12, 6, 3, 2, 1>(t, b, 0, last);
    case 2: return columns<T, addend, ending, 2, 12, 6, 3, 2, 1>(t, b, 0, last);
    case 3: return columns<T, addend, ending, 3, 8, 4, 2, 1>(t, b, 0, last);
    default: return columns<T, addend, ending, 4, 6, 3, 2, 1>(t, b, 0, last);
  }
}

// Addresses of columns are kept in registers: fewer at a time than there are sums for.
template <class T, Addend addend, Ending ending>
SUPERSTEP_VNNI void panel(const GatheredTile& t, const IntegerBlock& b) {
  const auto spare = static_cast<int>((width - b.channels % width) % width);
  const auto last = static_cast<__mmask16>(0xffff >> spare);
  switch ((b.channels + width - 1) / width) {
    case 1: return columns<T, addend, ending, 1, 8, 4, 2, 1>(t, b, 0, last);
    case 2: return columns<T, addend, ending, 2, 8, 4, 2, 1>(t, b, 0, last);
    case 3: return columns<T, addend, ending, 3, 8, 4, 2, 1>(t, b, 0, last);
    default: return columns<T, addend, ending, 4, 6, 3, 2, 1>(t, b, 0, last);
  }
}

template <class T, class Operands>
SUPERSTEP_VNNI void tile(const Operands& t, const IntegerBlock& b) {
  constexpr Ending rectifier = Ending::rectifier;
  if (b.hard_swish) return panel<T, Addend::none, Ending::hard_swish>(t, b);
  if (b.added_bytes) return panel<T, Addend::bytes, rectifier>(t, b);
  b.added ? panel<T, Addend::floats, rectifier>(t, b) : panel<T, Addend::none, rectifier>(t, b);
}

SUPERSTEP_VNNI void gathered_tile(const GatheredTile& t, const IntegerBlock& b) {
  if (t.more) return panel<std::int32_t, Addend::none, Ending::rectifier>(t, b);
  t.bytes ? tile<std::uint8_t>(t, b) : tile<float>(t, b);
}

}  // namespace

ByteProducts byte_products() {
  if (has_byte_dot_products()) return ByteProducts::quads;
  return instruction_set() >= InstructionSet::avx2 ? ByteProducts::pairs : ByteProducts::none;
}

ByteTileFunction* byte_tile_as_f32() {
  return byte_products() == ByteProducts::quads ? tile<float, ByteTile> : avx2_byte_tile_as_f32();
}
ByteTileFunction* byte_tile_as_bytes() {
  return byte_products() == ByteProducts::quads ? tile<std::uint8_t, ByteTile> : avx2_byte_tile_as_bytes();
}
GatheredTileFunction* gathered_byte_tile() {
  return byte_products() == ByteProducts::quads ? gathered_tile : nullptr;
}

}  // namespace superstep::kernels

#else

namespace superstep::kernels {

ByteProducts byte_products() { return ByteProducts::none; }
ByteTileFunction* byte_tile_as_f32() { return nullptr; }
ByteTileFunction* byte_tile_as_bytes() { return nullptr; }
GatheredTileFunction* gathered_byte_tile() { return nullptr; }

}  // namespace superstep::kernels

#endif

namespace superstep::kernels {

std::string byte_tile_refusal() {
  return byte_products() == ByteProducts::none ? "products of bytes need AVX2, or AVX-512 VNNI" : "";
}

}  // namespace superstep::kernels
