// What a model takes on such a machine, counted without running a vertex.
#pragma once

#include <string>
#include <string_view>

#include "superstep/bsp/profile/profile.h"
#include "superstep/target/ipu/lower/lowering.h"
#include "superstep/target/target.h"

namespace superstep::target::ipu {

// Lowers and compiles the graph and counts one run of it: cycles, memory by tile, liveness. A graph that does
// not fit is counted all the same, and the profile says what is too full. Throws what lower() throws.
bsp::Profile timed_profile(const graph::Graph& graph, std::string_view machine, LowerOptions options = {});

// The same of a model on the chips that `options` ask for.
struct TimedChips {
  bsp::Profile profile;
  std::string layout;  // over several chips, for people; empty: one chip
};
TimedChips timed_profile(const GraphAtBatch& model, std::string_view machine, const CompileOptions& options,
                         LowerOptions lower_options = {});

}  // namespace superstep::target::ipu
