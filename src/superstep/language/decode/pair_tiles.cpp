#include "superstep/language/decode/pair_tiles.h"

#if defined(__x86_64__)
// GCC warns of the registers that its own header leaves undefined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define SUPERSTEP_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#endif

namespace superstep::language {

#if defined(__x86_64__)

namespace {

constexpr std::int64_t lanes = 16, width = pair_panel_width;
constexpr int rows_of_tile = pair_tile_rows;

// Two columns of a row.
inline int pair_at(const bf16* weights) {
  int pair = 0;
  std::memcpy(&pair, weights, sizeof pair);
  return pair;
}

// The first lanes of a vector.
template <class Mask>
Mask first_of(std::int64_t count) {
  return static_cast<Mask>((std::uint64_t{1} << count) - 1);
}

// 24 sums, three vectors of tokens and a pair of weights are in registers.
template <int Rows, int Vectors>
SUPERSTEP_PAIRS void multiply(const PairTile& t) {
  __m512 sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v)
      sums[r][v] = t.added ? _mm512_loadu_ps(t.sums + r * width + v * lanes) : _mm512_setzero_ps();
  const bf16 *rows = t.rows, *tokens = t.tokens;
  const std::int64_t stride = t.stride;
  for (std::int64_t pair = 0; pair < t.pairs; ++pair, rows += 2, tokens += 2 * width) {
    __m512bh of_tokens[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) of_tokens[v] = (__m512bh)_mm512_loadu_si512(tokens + v * 2 * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const auto weights = (__m512bh)_mm512_set1_epi32(pair_at(rows + r * stride));
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], weights, of_tokens[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) _mm512_storeu_ps(t.sums + r * width + v * lanes, sums[r][v]);
}

// Whole tiles of rows, then those that are left alone.
template <int Vectors>
void multiply_rows(PairTile tile, std::int64_t rows) {
  std::int64_t r = 0;
  const auto next = [&](std::int64_t taken) {
    r += taken;
    tile.rows += taken * tile.stride;
    tile.sums += taken * width;
  };
  for (; r + rows_of_tile <= rows; next(rows_of_tile)) multiply<rows_of_tile, Vectors>(tile);
  for (; r < rows; next(1)) multiply<1, Vectors>(tile);
}

}  // namespace

void multiply_pair_tile(const PairTile& tile, std::int64_t rows, std::int64_t tokens) {
  if (tokens > 2 * lanes) return multiply_rows<3>(tile, rows);
  if (tokens > lanes) return multiply_rows<2>(tile, rows);
  multiply_rows<1>(tile, rows);
}

SUPERSTEP_PAIRS void round_to_pairs(const float* x, std::int64_t count, bf16* rounded) {
  for (std::int64_t i = 0; i < count; i += lanes) {
    const std::int64_t left = std::min(lanes, count - i);
    const auto bits = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(first_of<__mmask16>(left), x + i));
    _mm256_mask_storeu_epi16(rounded + i, first_of<__mmask16>(left + left % 2), bits);
  }
}

SUPERSTEP_PAIRS void copy_to_pairs(const bf16* numbers, std::int64_t count, bf16* copied) {
  for (std::int64_t i = 0; i < count; i += 2 * lanes) {
    const std::int64_t left = std::min(2 * lanes, count - i);
    _mm512_mask_storeu_epi16(copied + i, first_of<__mmask32>(left + left % 2),
                             _mm512_maskz_loadu_epi16(first_of<__mmask32>(left), numbers + i));
  }
}

#else

void multiply_pair_tile(const PairTile&, std::int64_t, std::int64_t) {}
void round_to_pairs(const float*, std::int64_t, bf16*) {}
void copy_to_pairs(const bf16*, std::int64_t, bf16*) {}

#endif

}  // namespace superstep::language
