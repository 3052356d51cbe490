// The checks that every program passes before it is compiled. Each throws Error (bad_graph).
#pragma once

#include <span>

#include "superstep/bsp/compile/access.h"
#include "superstep/bsp/engine/engine.h"

namespace superstep::bsp {

// The first element of a variable without a tile, looked up once a variable.
class MappingCheck {
 public:
  explicit MappingCheck(const GraphData& graph) : graph_(graph), unmapped_(graph.variables.size(), unknown) {}
  std::int64_t first_unmapped(VariableId id);  // -1: none

 private:
  static constexpr std::int64_t unknown = -2;
  const GraphData& graph_;
  std::vector<std::int64_t> unmapped_;
};

// Every vertex on a tile and every field of it connected, the elements that it uses too.
void check_compute_set(const GraphData& graph, ComputeSetId id, MappingCheck& mapping);

// No two vertices write one element, nor one through two fields; none reads what another writes, and, unless
// that is allowed, none reads through one field what it writes through another.
void check_races(const GraphData& graph, ComputeSetId id, const VertexAccesses& accesses,
                 bool allow_vertex_aliases);

// The tensors of a leaf: of this graph, mapped, and writeable where it writes; transfers of the right size.
void check_leaf(const GraphData& graph, const ProgramNode& node, MappingCheck& mapping);

// Nothing is read that was not written before: by this program, by another, by the host, or initially.
void check_definitions(const GraphData& graph, std::span<const Program> programs, AccessTable& accesses);

// "program Copy 'weights'", for messages.
std::string describe(const ProgramNode& node);

}  // namespace superstep::bsp
