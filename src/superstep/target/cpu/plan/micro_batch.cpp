#include "superstep/target/cpu/plan/micro_batch.h"

#include <unistd.h>

#include <algorithm>

#include "superstep/target/cpu/plan/memory_limit.h"

namespace superstep::target::cpu {
namespace {

// Samples of a micro-batch that is chosen by its arena, at least and at most. Chosen.
constexpr std::int64_t smallest_choice = 4, largest_small_choice = 64;
// FLOP/B: operations that take as long as a byte beyond the second-level cache, some 300 GFLOP/s of a core
// (docs/figures.md) beside 37 GB/s. Chosen, not fitted: only ratios of costs decide.
constexpr double flops_a_byte = 8;
// Costs within 3 % are the same, and the smallest micro-batch of them is taken: it needs less memory. Chosen.
constexpr double near_enough = 1.03;
// Parts of a batch that runs in step, and samples of one (docs/cpu/threads.md).
constexpr std::int64_t parts_in_step = 4, largest_in_step = 8;
constexpr double divided_share = 0.85;  // of what threads could do, where they divide each step; chosen

std::size_t second_level_cache_bytes() {
  const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return size > 0 ? static_cast<std::size_t>(size) : std::size_t{1} << 20;
}

// The micro-batch whose activations stay near the cache.
std::int64_t fitting(std::size_t bytes_a_sample) {
  const std::size_t samples = 2 * second_level_cache_bytes() / std::max<std::size_t>(1, bytes_a_sample);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(samples), smallest_choice, largest_small_choice);
}

// Threads that want a micro-batch of their own. Beyond the usual groups of a training step they divide its
// steps.
int threads_to_feed(int threads, bool trains) {
  return trains ? std::min(threads, static_cast<int>(usual_groups)) : threads;
}

}  // namespace

std::int64_t largest_divisor(std::int64_t batch, std::int64_t limit) {
  for (std::int64_t divisor = std::min(batch, limit); divisor > 1; --divisor)
    if (batch % divisor == 0) return divisor;
  return 1;
}

std::int64_t choose_in_step(std::int64_t batch, int threads, bool few_weights) {
  if (few_weights)
    return largest_divisor(
        batch, std::clamp(batch / parts_in_step, std::min(smallest_choice, batch / 2), largest_in_step));
  const int fed = threads_to_feed(threads, true);
  const std::int64_t parts = largest_divisor(batch, fed);
  const bool idle = static_cast<double>(parts) < divided_share * fed;
  return idle ? batch : batch / parts;
}

std::int64_t choose_micro_batch(std::int64_t batch, int threads, const Footprint& footprint) {
  const std::int64_t share = std::max<std::int64_t>(1, batch / threads_to_feed(threads, footprint.trains));
  const std::int64_t small = largest_divisor(batch, std::min(fitting(footprint.bytes_a_sample), share));
  const std::size_t cache = second_level_cache_bytes();
  if (footprint.weight_bytes <= cache) return small;
  const auto samples = static_cast<double>(batch), one = static_cast<double>(footprint.bytes_a_sample);
  const double passes = footprint.trains ? 3 : 2;
  const double arithmetic =
      samples * footprint.flops_a_sample / flops_a_byte / std::min<double>(threads, samples);
  // In bytes, operations too.
  const auto cost = [&](std::int64_t micro_batch) {
    const double alive = one * static_cast<double>(micro_batch), kept = 2 * static_cast<double>(cache);
    const double moved = alive > kept ? 1 - kept / alive : 0;
    return arithmetic + moved * passes * samples * one +
           samples / static_cast<double>(micro_batch) * static_cast<double>(footprint.weight_traffic);
  };
  double least = cost(small);
  for (std::int64_t divisor = small + 1; divisor <= share; ++divisor)
    if (batch % divisor == 0) least = std::min(least, cost(divisor));
  if (threads > 1 && cost(batch) + (1 / divided_share - 1) * arithmetic < least) return batch;
  for (std::int64_t divisor = small; divisor < share; ++divisor)
    if (batch % divisor == 0 && cost(divisor) <= near_enough * least) return divisor;
  return share;
}

}  // namespace superstep::target::cpu
