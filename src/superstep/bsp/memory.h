// How full every tile is, and of what.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "superstep/bsp/liveness.h"
#include "superstep/bsp/lower.h"

namespace superstep::bsp {

struct MemoryInput {
  const GraphData& graph;
  Placement& placement;
  const Liveness& liveness;
  std::span<const LoweredStep> steps;
  const VertexMemory& vertices;
};

struct MemoryPlan {
  std::vector<TileMemory> tiles;
  std::vector<LivenessStep> liveness;
  std::vector<std::uint32_t> worst_step;  // of each tile
};
MemoryPlan plan_memory(const MemoryInput& input);

// Throws Error (out_of_memory) when a tile holds more than it has, naming its ten largest tenants.
void require_fit(const MemoryInput& input, const MemoryPlan& plan);

}  // namespace superstep::bsp
