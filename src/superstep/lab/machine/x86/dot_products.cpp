// Dot products of bf16 pairs by AVX512_BF16 and of groups of four bytes by AVX512_VNNI, where the processor
// has them.
#include <immintrin.h>

#include "superstep/lab/machine/peak_kernels.h"

namespace superstep::lab {
namespace {

constexpr int chains = 12, flop_per_instruction = 64;  // 16 lanes of two multiply-adds

__attribute__((target("avx512f,avx512bf16"))) float rounds_of_dots(std::int64_t rounds) {
  const __m512bh a = (__m512bh)_mm512_set1_epi16(0x3f7f), b = (__m512bh)_mm512_set1_epi16(0x3a80);
  __m512 x[chains];
  // Chains that began alike would be merged by the compiler.
  for (int i = 0; i < chains; ++i) x[i] = _mm512_set1_ps(0.5f + 0.01f * static_cast<float>(i));
  for (std::int64_t i = 0; i < rounds; ++i)
    for (__m512& chain : x) chain = _mm512_dpbf16_ps(chain, a, b);
  for (int i = 1; i < chains; ++i) x[0] = _mm512_add_ps(x[0], x[i]);
  return _mm512_cvtss_f32(x[0]);
}

constexpr int byte_flop_per_instruction = 128;  // 16 lanes of four multiply-adds

__attribute__((target("avx512f,avx512vnni"))) int rounds_of_byte_dots(std::int64_t rounds) {
  const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-2);
  __m512i x[chains];
  for (int i = 0; i < chains; ++i) x[i] = _mm512_set1_epi32(i);
  for (std::int64_t i = 0; i < rounds; ++i)
    for (__m512i& chain : x) chain = _mm512_dpbusd_epi32(chain, a, b);
  for (int i = 1; i < chains; ++i) x[0] = _mm512_add_epi32(x[0], x[i]);
  return _mm512_cvtsi512_si32(x[0]);
}

}  // namespace

double run_int8_dot(std::int64_t rounds, float& sink) {
  if (!__builtin_cpu_supports("avx512vnni")) return 0;
  sink += static_cast<float>(rounds_of_byte_dots(rounds));
  return static_cast<double>(rounds) * chains * byte_flop_per_instruction;
}

double run_bf16_dot(std::int64_t rounds, float& sink) {
  if (!__builtin_cpu_supports("avx512bf16")) return 0;
  sink += rounds_of_dots(rounds);
  return static_cast<double>(rounds) * chains * flop_per_instruction;
}

}  // namespace superstep::lab
