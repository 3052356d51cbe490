#include "superstep/language/decode/byte_tiles.h"

#include "superstep/base/system/instruction_set.h"

#if defined(__x86_64__)
// GCC warns of the registers that its own header leaves undefined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include <cstring>
#include <vector>

#define SUPERSTEP_AVX2 __attribute__((target("avx2,fma")))
#define SUPERSTEP_AVX2_INLINE __attribute__((target("avx2,fma"), always_inline)) inline
#define SUPERSTEP_VNNI_SETS target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")
#define SUPERSTEP_VNNI __attribute__((SUPERSTEP_VNNI_SETS))
#define SUPERSTEP_VNNI_INLINE __attribute__((SUPERSTEP_VNNI_SETS, always_inline)) inline
#endif

namespace superstep::language {

#if defined(__x86_64__)

namespace {

constexpr std::int64_t block_columns = 32, quads_of_block = 8;
constexpr int vectors_of_panel = 3;

// Four columns of a row.
inline int four_at(const std::uint8_t* weights) {
  int four = 0;
  std::memcpy(&four, weights, sizeof four);
  return four;
}

// The tile's rows from `taken` on.
ByteTile rows_from(const ByteTile& tile, std::int64_t taken) {
  ByteTile rest = tile;
  rest.weights += taken * tile.stride;
  rest.scales += taken * tile.scale_stride;
  rest.smallest += taken * tile.scale_stride;
  rest.sums += taken * tile.width;
  return rest;
}

// What a group's sums begin with: less the offset of its weights times the sum of a token's bytes.
template <int Groups>
SUPERSTEP_VNNI_INLINE __m512i sums_of_bytes_512(const ByteTile& t, std::int64_t group, std::int64_t lane) {
  const std::int32_t* at = t.token_sums + group * (2 / Groups) * t.width + lane;
  const __m512i sums = _mm512_loadu_si512(at);
  return Groups == 2 ? sums : _mm512_add_epi32(sums, _mm512_loadu_si512(at + t.width));
}

// 24 sums, three vectors of tokens and four columns of weights are in registers. `Groups`: of a block.
template <int Rows, int Vectors, int Groups, bool Smallest>
SUPERSTEP_VNNI void multiply_512(const ByteTile& t) {
  constexpr std::int64_t lanes = 16, quads = quads_of_block / Groups;
  const __m512i offset = _mm512_set1_epi32(-t.form.offset);
  const std::int8_t* tokens = t.tokens;
  for (std::int64_t group = 0; group < t.blocks * Groups; ++group) {
    __m512i sums[Rows][Vectors], bytes[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      bytes[v] = sums_of_bytes_512<Groups>(t, group, v * lanes);
      const __m512i start = Smallest ? _mm512_setzero_si512() : _mm512_mullo_epi32(bytes[v], offset);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) sums[r][v] = start;
    }
    const std::uint8_t* weights = t.weights + group * (block_columns / Groups);
    // As a loop, compilers keep the sums in memory.
#pragma GCC unroll 8
    for (std::int64_t quad = 0; quad < quads; ++quad, tokens += 4 * t.width) {
      __m512i of_tokens[Vectors];
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) of_tokens[v] = _mm512_loadu_si512(tokens + v * 4 * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const __m512i four = _mm512_set1_epi32(four_at(weights + r * t.stride + 4 * quad));
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], four, of_tokens[v]);
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      const __m512 of_token = _mm512_loadu_ps(t.token_scales + group / Groups * t.width + v * lanes);
      const __m512 low = Smallest ? _mm512_mul_ps(_mm512_cvtepi32_ps(bytes[v]), of_token) : of_token;
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        float* to = t.sums + r * t.width + v * lanes;
        const __m512 scale = _mm512_mul_ps(of_token, _mm512_set1_ps(t.scales[r * t.scale_stride + group]));
        __m512 sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r][v]), scale, _mm512_loadu_ps(to));
        if constexpr (Smallest)
          sum = _mm512_fnmadd_ps(low, _mm512_set1_ps(t.smallest[r * t.scale_stride + group]), sum);
        _mm512_storeu_ps(to, sum);
      }
    }
  }
}

SUPERSTEP_AVX2_INLINE __m256i load_256(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

template <int Groups>
SUPERSTEP_AVX2_INLINE __m256i sums_of_bytes_256(const ByteTile& t, std::int64_t group, std::int64_t lane) {
  const std::int32_t* at = t.token_sums + group * (2 / Groups) * t.width + lane;
  return Groups == 2 ? load_256(at) : _mm256_add_epi32(load_256(at), load_256(at + t.width));
}

// Sums of 16 bits, which so many products of pairs of bytes cannot leave, then of 32.
template <int Rows, int Vectors, int Groups, bool Smallest>
SUPERSTEP_AVX2 void multiply_256(const ByteTile& t) {
  // 2 * 127 times a weight is what a quad adds at most: of weights to 15 eight quads stay below 2^15, of
  // those to 63 two.
  constexpr std::int64_t lanes = 8, quads = Groups == 1 ? 8 : 2, halves = quads_of_block / Groups / quads;
  const __m256i offset = _mm256_set1_epi32(-t.form.offset), ones = _mm256_set1_epi16(1);
  const std::int8_t* tokens = t.tokens;
  for (std::int64_t group = 0; group < t.blocks * Groups; ++group) {
    __m256i wide[Rows][Vectors], bytes[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      bytes[v] = sums_of_bytes_256<Groups>(t, group, v * lanes);
      const __m256i start = Smallest ? _mm256_setzero_si256() : _mm256_mullo_epi32(bytes[v], offset);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) wide[r][v] = start;
    }
    const std::uint8_t* weights = t.weights + group * (block_columns / Groups);
    for (std::int64_t half = 0; half < halves; ++half) {
      __m256i sums[Rows][Vectors];
      for (auto& row : sums)
        for (__m256i& sum : row) sum = _mm256_setzero_si256();
      for (std::int64_t quad = 0; quad < quads; ++quad, tokens += 4 * t.width, weights += 4)
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) {
          const __m256i four = _mm256_set1_epi32(four_at(weights + r * t.stride));
#pragma GCC unroll 8
          for (int v = 0; v < Vectors; ++v) {
            const __m256i products = _mm256_maddubs_epi16(four, load_256(tokens + v * 4 * lanes));
            sums[r][v] = _mm256_add_epi16(sums[r][v], products);
          }
        }
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v)
          wide[r][v] = _mm256_add_epi32(wide[r][v], _mm256_madd_epi16(sums[r][v], ones));
    }
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      const __m256 of_token = _mm256_loadu_ps(t.token_scales + group / Groups * t.width + v * lanes);
      const __m256 low = Smallest ? _mm256_mul_ps(_mm256_cvtepi32_ps(bytes[v]), of_token) : of_token;
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        float* to = t.sums + r * t.width + v * lanes;
        const __m256 scale = _mm256_mul_ps(of_token, _mm256_set1_ps(t.scales[r * t.scale_stride + group]));
        __m256 sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(wide[r][v]), scale, _mm256_loadu_ps(to));
        if constexpr (Smallest)
          sum = _mm256_fnmadd_ps(low, _mm256_set1_ps(t.smallest[r * t.scale_stride + group]), sum);
        _mm256_storeu_ps(to, sum);
      }
    }
  }
}

// Whole tiles of rows, then those that are left alone.
template <int Rows, auto of_tile, auto of_row>
void multiply_rows(const ByteTile& tile, std::int64_t rows) {
  std::int64_t r = 0;
  for (; r + Rows <= rows; r += Rows) of_tile(rows_from(tile, r));
  for (; r < rows; ++r) of_row(rows_from(tile, r));
}

template <int Vectors, int Groups, bool Smallest>
void multiply_vectors_512(const ByteTile& tile, std::int64_t rows) {
  multiply_rows<8, multiply_512<8, Vectors, Groups, Smallest>, multiply_512<1, Vectors, Groups, Smallest>>(
      tile, rows);
}
template <int Vectors, int Groups, bool Smallest>
void multiply_vectors_256(const ByteTile& tile, std::int64_t rows) {
  multiply_rows<4, multiply_256<4, Vectors, Groups, Smallest>, multiply_256<1, Vectors, Groups, Smallest>>(
      tile, rows);
}

// By the groups of a block.
template <int Vectors>
void multiply_forms_512(const ByteTile& tile, std::int64_t rows) {
  if (tile.form.has_smallest) return multiply_vectors_512<Vectors, 1, true>(tile, rows);
  if (tile.form.group == block_columns) return multiply_vectors_512<Vectors, 1, false>(tile, rows);
  multiply_vectors_512<Vectors, 2, false>(tile, rows);
}
template <int Vectors>
void multiply_forms_256(const ByteTile& tile, std::int64_t rows) {
  if (tile.form.has_smallest) return multiply_vectors_256<Vectors, 1, true>(tile, rows);
  if (tile.form.group == block_columns) return multiply_vectors_256<Vectors, 1, false>(tile, rows);
  multiply_vectors_256<Vectors, 2, false>(tile, rows);
}

void multiply_tile_512(const ByteTile& tile, std::int64_t rows, std::int64_t tokens) {
  constexpr std::int64_t lanes = 16;
  if (tokens > 2 * lanes) return multiply_forms_512<3>(tile, rows);
  if (tokens > lanes) return multiply_forms_512<2>(tile, rows);
  multiply_forms_512<1>(tile, rows);
}
void multiply_tile_256(const ByteTile& tile, std::int64_t rows, std::int64_t tokens) {
  constexpr std::int64_t lanes = 8;
  if (tokens > 2 * lanes) return multiply_forms_256<3>(tile, rows);
  if (tokens > lanes) return multiply_forms_256<2>(tile, rows);
  multiply_forms_256<1>(tile, rows);
}

constexpr ByteTileWay all_ways[] = {{"AVX-512 VNNI", vectors_of_panel * 16, 255, multiply_tile_512},
                                    {"AVX2", vectors_of_panel * 8, 63, multiply_tile_256}};

}  // namespace

std::span<const ByteTileWay> byte_tile_ways() {
  const std::span<const ByteTileWay> ways = all_ways;
  if (has_byte_dot_products()) return ways;
  return ways.subspan(instruction_set() >= InstructionSet::avx2 ? 1 : ways.size());
}

#else

std::span<const ByteTileWay> byte_tile_ways() { return {}; }

#endif

}  // namespace superstep::language
