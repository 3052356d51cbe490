#include "bench/kernels/peak.h"

#include <immintrin.h>

#include <chrono>

namespace superstep::bench {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {

constexpr int chains = 12;

// Twelve named chains: an array would be kept in memory by the barriers that keep the loop from being
// folded.
#define SUPERSTEP_CHAINS(step) \
  step(a) step(b) step(c) step(d) step(e) step(f) step(g) step(h) step(i) step(j) step(k) step(l)

__attribute__((target("avx512f"), noinline)) void fma_avx512(long n) {
  const __m512 factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(0.1f);
#define SUPERSTEP_DECLARE(x) __m512 x = term;
#define SUPERSTEP_STEP(x)               \
  x = _mm512_fmadd_ps(x, factor, term); \
  asm volatile("" : "+v"(x));
  SUPERSTEP_CHAINS(SUPERSTEP_DECLARE)
  for (long count = 0; count < n; ++count) {
    SUPERSTEP_CHAINS(SUPERSTEP_STEP)
  }
#undef SUPERSTEP_DECLARE
#undef SUPERSTEP_STEP
}

__attribute__((target("avx2,fma"), noinline)) void fma_avx2(long n) {
  const __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.1f);
#define SUPERSTEP_DECLARE(x) __m256 x = term;
#define SUPERSTEP_STEP(x)               \
  x = _mm256_fmadd_ps(x, factor, term); \
  asm volatile("" : "+x"(x));
  SUPERSTEP_CHAINS(SUPERSTEP_DECLARE)
  for (long count = 0; count < n; ++count) {
    SUPERSTEP_CHAINS(SUPERSTEP_STEP)
  }
#undef SUPERSTEP_DECLARE
#undef SUPERSTEP_STEP
}

}  // namespace

double measure_fma_peak() {
  constexpr long n = 20000;
  if (__builtin_cpu_supports("avx512f"))
    return 2.0 * 16 * chains * n / best_seconds([] { fma_avx512(n); }, 15);
  if (__builtin_cpu_supports("fma")) return 2.0 * 8 * chains * n / best_seconds([] { fma_avx2(n); }, 15);
  return 0;
}

}  // namespace superstep::bench
