// The border between backward and update: the values that pass over it are the gradients, and targets that
// split a batch into micro-batches accumulate exactly these (transform/training/training_step.h).
//
// A pass that lets one value stand for another must leave the border as it was: an update must not come to
// read a forward value where it read a gradient, nor a backward value that is no gradient.
#pragma once

#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::transform {

// By value: computed in phase backward and read by a node of phase update, or the next value of a state.
std::vector<bool> gradient_values(const graph::Graph& graph);

// The phase a value belongs to; inputs, constants and states belong to forward.
graph::Phase phase_of(const graph::Graph& graph, graph::ValueId value);

// May a value computed in phase `replacement` be read in place of an equal one of phase `replaced`, which is
// a gradient or not?
bool may_stand_for(graph::Phase replacement, graph::Phase replaced, bool is_gradient);

}  // namespace superstep::transform
