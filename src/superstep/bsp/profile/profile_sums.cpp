#include "superstep/bsp/profile/profile_sums.h"

#include <algorithm>

namespace superstep::bsp {

MemorySums sum_memory(const CompilationProfile& compilation) {
  MemorySums sums;
  for (std::size_t i = 0; i < compilation.tiles.size(); ++i) {
    const TileMemory& tile = compilation.tiles[i];
    for (const MemoryCategory& category : memory_categories)
      sums.by_category.*category.bytes += tile.*category.bytes;
    sums.excluding_gaps += tile.excluding_gaps();
    sums.including_gaps += tile.including_gaps();
    sums.always_live += tile.always_live();
    sums.not_always_live += tile.not_always_live;
    sums.max_excluding_gaps = std::max(sums.max_excluding_gaps, tile.excluding_gaps());
    if (tile.including_gaps() > sums.max_including_gaps) {
      sums.max_including_gaps = tile.including_gaps();
      sums.fullest_tile = i;
    }
  }
  return sums;
}

ExecutionSums sum_execution(const Profile& profile) {
  ExecutionSums sums;
  for (const VertexKindProfile& kind : profile.compilation.vertex_kinds)
    sums.vertices[kind.name].instances = kind.instances;
  const std::vector<std::uint64_t>& times = profile.total.times;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const StepProfile& step = profile.compilation.steps[i];
    sums.compute_all += times[i] * step.compute_cycles_all;
    sums.compute_busy += times[i] * step.compute_cycles_busy;
    sums.exchange += times[i] * step.exchange_cycles_all;
    sums.exchanged_bytes += times[i] * step.exchanged_bytes;
    sums.link_bytes += times[i] * step.link_bytes;
    sums.host_bytes += times[i] * step.host_bytes;
    sums.flops += times[i] * step.flops;
    for (const auto& [name, cycles] : step.cycles_by_vertex) sums.vertices[name].cycles += times[i] * cycles;
  }
  return sums;
}

}  // namespace superstep::bsp
