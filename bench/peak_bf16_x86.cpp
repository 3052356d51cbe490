// Dot products of bf16 pairs by AVX512_BF16, where the processor has it.
#include <immintrin.h>

#include "peak.h"

namespace superstep::bench {
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

}  // namespace

double run_bf16_dot(std::int64_t rounds, float& sink) {
  if (!__builtin_cpu_supports("avx512bf16")) return 0;
  sink += rounds_of_dots(rounds);
  return static_cast<double>(rounds) * chains * flop_per_instruction;
}

}  // namespace superstep::bench
