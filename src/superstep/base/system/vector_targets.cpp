// What Highway's headers ask its library for: for which instruction sets loops may be chosen, and which are.
//
// The library itself is not linked. It holds what Highway's own benchmarks need besides, and measures its
// clock whenever a program that is linked to it starts: milliseconds that no command has a use for.
#include <hwy/targets.h>

#include <atomic>
#include <cstdint>

namespace hwy {
namespace {

// Sets that files here are compiled for beyond the one that every processor of its kind has: AVX2 and AVX-512
// as Highway means them (hwy/ops/set_macros-inl.h).
std::int64_t targets_of_processor() {
  std::int64_t targets = HWY_STATIC_TARGET;
#if HWY_ARCH_X86_64
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  if (avx2) targets |= HWY_AVX2;
  if (avx512) targets |= HWY_AVX3;
#endif
  return targets;
}

std::atomic<std::int64_t> given{0};  // 0: what the processor has

}  // namespace

std::int64_t SupportedTargets() {
  if (const std::int64_t targets = given.load()) return targets;
  static const std::int64_t found = targets_of_processor();
  return found;
}

void SetSupportedTargetsForTest(std::int64_t targets) { given.store(targets); }

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
