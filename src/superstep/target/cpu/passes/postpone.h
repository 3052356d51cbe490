// Work on sums over the batch, done once a step instead of once a micro-batch.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// The training step with nodes of phase backward that only multiply sums over the batch by parameters, move
// or add them (transform/batch_axis.h: `reduced`) in phase update, where what goes over the border is less
// than half as large as before. Linear work commutes with the mean over micro-batches: gradients differ by
// rounding. So the gradients of weights that were multiplied with each other (compose.h) are made of a small
// matrix.
graph::Graph postpone_linear(const graph::Graph& graph);

}  // namespace superstep::target::cpu
