// The vertex that runs a region's body on one tile, its six workers one share each.
#pragma once

#include <memory>

#include "superstep/bsp/graph/graph.h"
#include "superstep/openmp/plan.h"

namespace superstep::openmp {

// Fields: "array N" for every array that accesses name (N its number), "reduction N" (a group of elements a
// worker), and as state, of 32 bits each, the bounds of the part, and of each array's local box the first
// index and the stride of every dimension.
bsp::VertexClass body_class(std::shared_ptr<const Plan> plan, const std::string& name, std::uint32_t workers);

// Which box of each array the vertex is given, by number of array; unused arrays have an empty box.
void set_body_state(bsp::Graph& graph, bsp::VertexRef vertex, const Plan& plan, const PlanPart& part,
                    const std::vector<Box>& local);

}  // namespace superstep::openmp
