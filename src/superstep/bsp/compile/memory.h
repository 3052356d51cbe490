// How full every tile is, and of what.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/bsp/compile/liveness.h"
#include "superstep/bsp/compile/step_lowering.h"

namespace superstep::bsp {

struct MemoryInput {
  const GraphData& graph;
  Placement& placement;
  const Liveness& liveness;
  std::span<const LoweredStep> steps;
  const VertexMemory& vertices;
  bool merge_equal_constants = false;  // CompileOptions
};

struct MemoryPlan {
  std::vector<TileMemory> tiles;
  std::vector<LivenessStep> liveness;
  std::vector<std::uint32_t> worst_step;  // of each tile
};
MemoryPlan plan_memory(const MemoryInput& input);

// The error (out_of_memory) of a tile that holds more than it has, with its ten largest tenants; none when
// all fit.
std::optional<Error> misfit(const MemoryInput& input, const MemoryPlan& plan);

}  // namespace superstep::bsp
