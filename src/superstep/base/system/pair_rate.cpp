#include "superstep/base/system/pair_rate.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace superstep {

#if defined(__x86_64__)

namespace {

// Twelve chains, more than latency times rate of any core.
#define SUPERSTEP_TWELVE(instruction)                                                             \
  instruction " %%zmm12, %%zmm13, %%zmm0\n" instruction " %%zmm12, %%zmm13, %%zmm1\n" instruction \
              " %%zmm12, %%zmm13, %%zmm2\n" instruction " %%zmm12, %%zmm13, %%zmm3\n" instruction \
              " %%zmm12, %%zmm13, %%zmm4\n" instruction " %%zmm12, %%zmm13, %%zmm5\n" instruction \
              " %%zmm12, %%zmm13, %%zmm6\n" instruction " %%zmm12, %%zmm13, %%zmm7\n" instruction \
              " %%zmm12, %%zmm13, %%zmm8\n" instruction " %%zmm12, %%zmm13, %%zmm9\n" instruction \
              " %%zmm12, %%zmm13, %%zmm10\n" instruction " %%zmm12, %%zmm13, %%zmm11\n"

// All registers zero: subnormal numbers in them would take longer.
#define SUPERSTEP_LOOP_OF(instruction)                                                                 \
  asm volatile("vzeroall\n1:\n" SUPERSTEP_TWELVE(instruction) "dec %0\njnz 1b\nvzeroupper\n"           \
               : "+r"(rounds)                                                                          \
               :                                                                                       \
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

void multiply_f32(std::int64_t rounds) { SUPERSTEP_LOOP_OF("vfmadd231ps"); }
void multiply_pairs(std::int64_t rounds) { SUPERSTEP_LOOP_OF("vdpbf16ps"); }

// Twelve products of integers, each of the one before.
void multiply_in_turn(std::int64_t rounds) {
  std::int64_t value = 3;
  for (; rounds > 0; --rounds)
    asm volatile(
        "imul %0, %0\nimul %0, %0\nimul %0, %0\nimul %0, %0\nimul %0, %0\nimul %0, %0\n"
        "imul %0, %0\nimul %0, %0\nimul %0, %0\nimul %0, %0\nimul %0, %0\nimul %0, %0\n"
        : "+r"(value)
        :
        : "cc");
}

#undef SUPERSTEP_LOOP_OF
#undef SUPERSTEP_TWELVE

template <class Loop>
double seconds(const Loop& loop) {
  constexpr std::int64_t rounds = 400;  // some microseconds: longer than clocks are coarse
  const auto begun = std::chrono::steady_clock::now();
  loop(rounds);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// The shortest of several times, in turn: other work on the core only adds to them.
bool measure() {
  constexpr int tries = 6;
  // A vector of pairs holds twice the numbers. Processors are near 1 or 4; at 2 pairs, which are half the
  // bytes, are no slower.
  constexpr double slow = 2.5;
  double f32 = std::numeric_limits<double>::max(), pairs = f32;
  for (int i = 0; i < tries; ++i) {
    f32 = std::min(f32, seconds(multiply_f32));
    pairs = std::min(pairs, seconds(multiply_pairs));
  }
  return pairs < slow * f32;
}

bool measure_two() {
  constexpr int tries = 6;
  // Twelve products take twelve cycles or six, the chain 36.
  constexpr double two = 9.0 / 36;
  double pairs = std::numeric_limits<double>::max(), chain = pairs;
  for (int i = 0; i < tries; ++i) {
    pairs = std::min(pairs, seconds(multiply_pairs));
    chain = std::min(chain, seconds(multiply_in_turn));
  }
  return pairs < two * chain;
}

}  // namespace

bool has_pair_products() {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bf16");
}

bool pair_products_are_fast() {
  static const bool fast = has_pair_products() && measure();
  return fast;
}

bool begins_two_pair_products() {
  static const bool two = has_pair_products() && measure_two();
  return two;
}

#else

bool has_pair_products() { return false; }
bool pair_products_are_fast() { return false; }
bool begins_two_pair_products() { return false; }

#endif

}  // namespace superstep
