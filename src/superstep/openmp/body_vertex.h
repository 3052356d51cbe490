// The vertex that runs a region's body on one tile, its six workers one share each.
#pragma once

#include <memory>

#include "superstep/bsp/graph/graph.h"
#include "superstep/openmp/plan.h"

namespace superstep::openmp {

// Fields: "array N" for every array that accesses name (N its number), "reduction N" (a group of elements a
// worker), and as state, of 32 bits each, the bounds of the part, and of each array's local box the first
// index and the stride of every dimension. With `scalars_sent` the scalars come in a field "scalars" of
// 64-bit words; else they are the plan's, as state.
bsp::VertexClass body_class(std::shared_ptr<const Plan> plan, const std::string& name, std::uint32_t workers,
                            bool scalars_sent);
// Words that a region's scalars take.
std::int64_t scalar_words(const Region& region);

// Which box of each array the vertex is given, by number of array; unused arrays have an empty box.
void set_body_state(bsp::Graph& graph, bsp::VertexRef vertex, const Plan& plan, const PlanPart& part,
                    const std::vector<Box>& local);

}  // namespace superstep::openmp
