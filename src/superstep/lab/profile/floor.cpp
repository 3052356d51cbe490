#include "superstep/lab/profile/floor.h"

#include <algorithm>
#include <array>

#include "superstep/lab/machine/rates.h"
#include "superstep/record/environment.h"

namespace superstep::lab {
namespace {

// Few trials an access: there are a dozen of them, and the best one counts.
constexpr int trials = 6;

double best_bandwidth(int threads, std::size_t bytes) {
  const KeptBuffers kept;
  double fastest = 0;
  for (Access access : {Access::read, Access::copy, Access::triad})
    fastest = std::max(fastest, best(measure_rates(
                                    threads, [&] { return memory_work(bytes, access); }, trials)));
  return fastest / threads;
}

// What a level holds for one thread: caches near a core are its own, the last one is shared.
std::size_t capacity_of(const std::string& level, int threads) {
  const record::CacheSizes sizes = record::cache_sizes();
  if (level == "L1") return sizes.level1;
  if (level == "L2") return sizes.level2;
  return level == "L3" ? sizes.level3 / static_cast<std::size_t>(threads) : ~std::size_t{0};
}

}  // namespace

double MachineFloor::peak(ElementType arithmetic) const {
  const double rate = arithmetic == ElementType::bf16                                  ? bf16_flops
                      : arithmetic == ElementType::i8 || arithmetic == ElementType::u8 ? i8_flops
                                                                                       : f32_flops;
  return rate > 0 ? rate : f32_flops;
}

const LevelBandwidth& MachineFloor::level(double bytes) const {
  for (const LevelBandwidth& level : levels)
    if (bytes <= static_cast<double>(level.capacity)) return level;
  return levels.back();
}

double MachineFloor::bandwidth(double bytes) const { return level(bytes).bytes_per_second; }

// More threads than processors share what these reach.
MachineFloor measure_floor(int threads) {
  MachineFloor floor{.threads = threads,
                     .f32_flops = peak_flops(threads, "f32") / threads,
                     .bf16_flops = peak_flops(threads, "bf16") / threads,
                     .i8_flops = peak_flops(threads, "int8") / threads,
                     .levels = {}};
  for (const MemoryLevel& level : memory_levels(threads)) {
    const std::size_t capacity = capacity_of(level.name, threads);
    floor.levels.push_back(
        {level.name, capacity > 0 ? capacity : 2 * level.bytes, best_bandwidth(threads, level.bytes)});
  }
  return floor;
}

StepFloor floor_of(const target::PlanStep& step, const MachineFloor& machine) {
  StepFloor floor;
  if (step.flops > 0) floor.compute_seconds = step.flops / machine.peak(step.arithmetic);
  if (step.bytes > 0) floor.memory_seconds = step.bytes / machine.bandwidth(step.bytes);
  return floor;
}

}  // namespace superstep::lab
