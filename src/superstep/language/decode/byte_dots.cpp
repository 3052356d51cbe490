#include "superstep/language/decode/byte_dots.h"

#include "superstep/base/system/instruction_set.h"

#if defined(__x86_64__)
// GCC warns of the registers that its own header leaves undefined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include <cstring>

#define SUPERSTEP_VNNI_TARGET target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")
#define SUPERSTEP_VNNI __attribute__((SUPERSTEP_VNNI_TARGET))
#define SUPERSTEP_VNNI_INLINE __attribute__((SUPERSTEP_VNNI_TARGET, always_inline)) inline
#endif

namespace superstep::language {

#if defined(__x86_64__)

namespace {

SUPERSTEP_VNNI_INLINE float half(const std::byte* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return _cvtsh_ss(bits);
}

SUPERSTEP_VNNI_INLINE __m256i bytes(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

// One of the factors has no sign: the magnitudes of the weights, and the activations with their signs.
SUPERSTEP_VNNI_INLINE __m256 scaled_block_of_q8(const std::byte* block, const std::int8_t* x, float scale,
                                                __m256 total) {
  const __m256i weights = bytes(block + 2), own = bytes(x);
  const __m256i turned = _mm256_mask_sub_epi8(own, _mm256_movepi8_mask(weights), _mm256_setzero_si256(), own);
  const __m256i sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_abs_epi8(weights), turned);
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(half(block) * scale), total);
}

SUPERSTEP_VNNI_INLINE float sum_of(__m256 values) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

SUPERSTEP_VNNI float row_of_q8(const std::byte* row, std::int64_t columns, const Activations& x) {
  constexpr std::int64_t block_bytes = 34;
  const std::int8_t* of_token = x.bytes.data();
  const std::int64_t blocks = columns / byte_block;
  __m256 a = _mm256_setzero_ps(), b = _mm256_setzero_ps();  // two, for the latency of adding
  std::int64_t i = 0;
  for (; i + 2 <= blocks; i += 2) {
    const std::byte* block = row + i * block_bytes;
    const auto at = static_cast<std::size_t>(i);
    a = scaled_block_of_q8(block, of_token + i * byte_block, x.scales[at], a);
    b = scaled_block_of_q8(block + block_bytes, of_token + (i + 1) * byte_block, x.scales[at + 1], b);
  }
  if (i < blocks)
    a = scaled_block_of_q8(row + i * block_bytes, of_token + i * byte_block,
                           x.scales[static_cast<std::size_t>(i)], a);
  return sum_of(_mm256_add_ps(a, b));
}

// The scales and smallest values of a block's eight groups. Of the first four they are six bits of a byte
// each; those of the last four have four bits in the last four bytes, and two on top of the others.
struct GroupsOfQ4K {
  __m256 scales, smallest;
};
SUPERSTEP_VNNI_INLINE __m256 numbers_of(std::uint32_t first_four, std::uint32_t last_four) {
  const auto bits = static_cast<long long>(first_four | static_cast<std::uint64_t>(last_four) << 32);
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bits)));
}
SUPERSTEP_VNNI_INLINE GroupsOfQ4K groups_of_q4k(const std::byte* packed) {
  std::uint32_t word[3];
  std::memcpy(word, packed, sizeof word);
  constexpr std::uint32_t six = 0x3f3f3f3f, four = 0x0f0f0f0f, upper_two = 0x30303030;
  return {numbers_of(word[0] & six, (word[2] & four) | ((word[0] >> 2) & upper_two)),
          numbers_of(word[1] & six, ((word[2] >> 4) & four) | ((word[1] >> 2) & upper_two))};
}

// Two groups, which share 32 bytes, with the lower and the upper four bits of each; `lanes` spreads their
// scales.
SUPERSTEP_VNNI_INLINE __m512 scaled_pair_of_q4k(const std::byte* values, const std::int8_t* x, __m512 scales,
                                                __m512i lanes, __m512 total) {
  const __m256i own = bytes(values);
  const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(own), _mm256_srli_epi16(own, 4), 1);
  const __m512i weights = _mm512_and_si512(both, _mm512_set1_epi8(15));
  const __m512i sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), weights, _mm512_loadu_si512(x));
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), _mm512_permutexvar_ps(lanes, scales), total);
}

SUPERSTEP_VNNI float row_of_q4k(const std::byte* row, std::int64_t columns, const Activations& x) {
  constexpr std::int64_t block_bytes = 144, numbers = 256, groups = 8;
  const __m512i first = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi32(1), 1);
  const __m512i two = _mm512_set1_epi32(2);
  __m512 a = _mm512_setzero_ps(), b = _mm512_setzero_ps();
  __m256 smallest = _mm256_setzero_ps();
  for (std::int64_t i = 0; i < columns / numbers; ++i, row += block_bytes) {
    const std::int8_t* of_token = x.bytes.data() + i * numbers;
    const GroupsOfQ4K of = groups_of_q4k(row + 4);
    const __m256 scales =
        _mm256_mul_ps(_mm256_loadu_ps(x.scales.data() + i * groups), _mm256_set1_ps(half(row)));
    const __m256 sums =
        _mm256_mul_ps(_mm256_loadu_ps(x.sums.data() + i * groups), _mm256_set1_ps(half(row + 2)));
    smallest = _mm256_fmadd_ps(of.smallest, sums, smallest);
    const __m512 scaled = _mm512_castps256_ps512(_mm256_mul_ps(of.scales, scales));
    const std::byte* values = row + 16;
    __m512i lanes = first;
    a = scaled_pair_of_q4k(values, of_token, scaled, lanes, a);
    b = scaled_pair_of_q4k(values + 32, of_token + 64, scaled, lanes = _mm512_add_epi32(lanes, two), b);
    a = scaled_pair_of_q4k(values + 64, of_token + 128, scaled, lanes = _mm512_add_epi32(lanes, two), a);
    b = scaled_pair_of_q4k(values + 96, of_token + 192, scaled, lanes = _mm512_add_epi32(lanes, two), b);
  }
  const __m512 all = _mm512_add_ps(a, b);
  const __m256 folded = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
  return sum_of(_mm256_sub_ps(folded, smallest));
}

}  // namespace

bool suits_byte_dots(Packing packing) {
  return (packing == Packing::q8_0 || packing == Packing::q4_k) && has_byte_dot_products();
}

void multiply_rows_by_byte_dots(const Matrix& matrix, const Activations& x, std::int64_t first,
                                std::int64_t last, float* y) {
  const auto row_of = matrix.packing == Packing::q8_0 ? row_of_q8 : row_of_q4k;
  for (std::int64_t r = first; r < last; ++r) y[r] = row_of(matrix.row(r), matrix.columns, x);
}

#else

bool suits_byte_dots(Packing) { return false; }
void multiply_rows_by_byte_dots(const Matrix&, const Activations&, std::int64_t, std::int64_t, float*) {}

#endif

}  // namespace superstep::language
