// What the machine model plans for a graph, as a profile: for graphs whose program is out of reach.
#pragma once

#include <string>
#include <string_view>

#include "superstep/bsp/profile/profile.h"
#include "superstep/graph/graph.h"

namespace superstep::target::ipu {

// One run of the graph in f32 by the plans of machine/ipu: a step a kernel, with its cycles by part; every
// tile with the same share of memory (parts are not placed); liveness by the values of the graph. `reason`
// says why there is no program. Throws Error (unsupported) naming operators without a cost model.
bsp::Profile planned_profile(const graph::Graph& graph, std::string_view machine, std::string reason);

}  // namespace superstep::target::ipu
