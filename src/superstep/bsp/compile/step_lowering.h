// Steps of a program made ready to run, with what they cost and what they need beside the variables.
#pragma once

#include <vector>

#include "superstep/bsp/compile/exchange.h"
#include "superstep/bsp/compile/executable_data.h"

namespace superstep::bsp {

// Bytes of one tile that a step needs for its own duration, and pieces that its exchange code handles.
struct StepTile {
  std::uint32_t tile = 0;
  std::uint64_t temporary_bytes = 0, fragments = 0, host_bytes = 0;
};

struct LoweredStep {
  StepProfile profile;
  std::vector<StepTile> tiles;
};

// What vertices of one class take, over all tiles.
struct ClassUse {
  std::uint64_t instances = 0, state_bytes = 0, code_bytes = 0;
  bool default_estimate = false;
  bool counted = false;
};

struct VertexMemory {
  std::map<std::string, ClassUse> classes;
  std::map<std::uint32_t, std::uint64_t> state_bytes;                  // by tile
  std::map<std::uint32_t, std::map<std::string, std::uint64_t>> code;  // by tile and class
};

class StepLowering {
 public:
  StepLowering(const GraphData& graph, bool timing_only)
      : graph_(graph), placement_(graph), timing_only_(timing_only) {}

  // The compute set for the engine, its cost, and its vertices' memory added to `memory`.
  LoweredComputeSet compute_set(ComputeSetId id,
                                const std::map<std::string, VertexClass, std::less<>>& classes);
  LoweredStep execute(ComputeSetId id, VertexMemory& memory);
  // Fills the node's data and gives its cost.
  LoweredStep leaf(const ProgramNode& node, LoweredNode& lowered);

  Placement& placement() { return placement_; }

 private:
  LoweredStep copy(const ProgramNode& node, LoweredNode& lowered);
  LoweredStep cross_replica(const ProgramNode& node, LoweredNode& lowered);
  LoweredStep host(const ProgramNode& node, double bytes_per_second);
  LoweredStep decision(const ProgramNode& node);
  std::uint32_t chips_of(const Tensor& tensor);

  const GraphData& graph_;
  Placement placement_;
  bool timing_only_;
};

// Pairs up the elements of two tensors of one size.
std::vector<Segment> segments(const View& source, const View& destination);

// Sizes and values of a vertex, as cost functions take them.
VertexFields fields_of(const VertexData& vertex);

}  // namespace superstep::bsp
