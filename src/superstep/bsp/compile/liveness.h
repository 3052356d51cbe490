// Which variables hold values that are still needed, step by step.
#pragma once

#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "superstep/bsp/compile/access.h"

namespace superstep::bsp {

struct Liveness {
  // Variables that are live while a step runs, by its number: what it reads, writes, and what later steps
  // read.
  std::vector<std::vector<VariableId>> steps;
  // Variables whose values pass from one run to the next, or to and from the host: live all the time.
  std::set<VariableId> always;
};

// `step_of` numbers the leaves and decisions of the programs; `count` is how many numbers there are.
Liveness analyze_liveness(const GraphData& graph, std::span<const Program> programs, AccessTable& accesses,
                          const std::unordered_map<const ProgramNode*, std::uint32_t>& step_of,
                          std::size_t count);

}  // namespace superstep::bsp
