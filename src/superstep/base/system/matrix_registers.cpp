#include "superstep/base/system/matrix_registers.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace superstep {

#if defined(__x86_64__) && defined(__linux__)

namespace {

// The bits of leaf 7 that say what there is: tiles, products of bf16 and of bytes.
bool processor_has_matrix_registers() {
  constexpr unsigned bf16 = 1U << 22, tiles = 1U << 24, bytes = 1U << 25, all = bf16 | tiles | bytes;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & all) == all;
}

}  // namespace

bool has_matrix_registers() {
  // The registers are 8 kB that Linux saves only for processes that asked: arch_prctl(ARCH_REQ_XCOMP_PERM,
  // XTILEDATA).
  constexpr long request = 0x1023, tile_data = 18;
  static const bool granted =
      processor_has_matrix_registers() && syscall(SYS_arch_prctl, request, tile_data) == 0;
  return granted;
}

#else

bool has_matrix_registers() { return false; }

#endif

}  // namespace superstep
