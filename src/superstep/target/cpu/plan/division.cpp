#include "superstep/target/cpu/plan/division.h"

#include <algorithm>
#include <cmath>

namespace superstep::target::cpu {
namespace {

// A second thread pays for a step that takes some 3 to 5 us at 100 GFLOP/s and 25 GB/s a core: calling it
// takes about 1 us, and what other steps left in several cores' caches costs one core alone more.
constexpr double parallel_flops = 5e5, parallel_bytes = 64e3;
constexpr double flops_a_second = 100e9, bytes_a_second = 25e9;

// To call threads and to wait for the last of them: s, and s for each.
constexpr double calling = 1e-6, calling_one = 1e-7;

double seconds_of(const kernels::KernelInfo& step) {
  return std::max(step.flops / flops_a_second, step.bytes / bytes_a_second);
}

double meeting(double threads) { return calling + calling_one * threads; }

// Where another thread takes longer to call than it takes off the others' shares.
int best_for(double seconds, int most) {
  return std::clamp(static_cast<int>(std::sqrt(seconds / calling_one)), 2, std::max(2, most));
}

}  // namespace

int threads_that_pay(const kernels::KernelInfo& step, int threads) {
  const auto most =
      static_cast<int>(std::min<std::int64_t>(threads, std::max<std::int64_t>(step.parts, step.members)));
  if (most < 2 || (step.flops < parallel_flops && step.bytes < parallel_bytes)) return 1;
  return best_for(seconds_of(step), most);
}

int threads_that_pay_together(const kernels::KernelInfo& step, const Together& together, int threads) {
  const auto count = static_cast<double>(together.micro_batches);
  const double one = seconds_of(step), alone = one * static_cast<double>(together.a_group);
  const std::int64_t items = static_cast<std::int64_t>(together.micro_batches) * step.parts;
  if (step.parts < 2 || threads < 2) return 1;
  const int called = best_for(count * one, static_cast<int>(std::min<std::int64_t>(threads, items)));
  // Before and after it the groups go on alone: they meet twice.
  return count * one / called + 2 * meeting(threads) < alone ? called : 1;
}

}  // namespace superstep::target::cpu
