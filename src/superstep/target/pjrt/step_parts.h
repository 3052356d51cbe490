// A training step in two programs, between which values are averaged over ranks: what runs before the update,
// and the update.
#pragma once

#include <cstddef>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::target::pjrt {

// The values that pass from the rest of a step to its update: gradients, and states' next values that are
// made before it.
std::vector<graph::ValueId> crossing_values(const graph::Graph& step);

// All but the update: the outputs that it makes, then the crossing values. No state changes.
graph::Graph before_update(const graph::Graph& step);
// The update alone: its inputs are the step's that it reads, then the crossing values; its outputs those of
// the step that it makes. All states of the step, in their order.
graph::Graph update_alone(const graph::Graph& step);

// Whether an output of the step is made in its update.
bool is_of_update(const graph::Graph& step, std::size_t output);

}  // namespace superstep::target::pjrt
