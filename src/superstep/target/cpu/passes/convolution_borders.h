// What stands directly before and behind a convolution and is better done by its weights.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// A constant factor of what convolutions of f32 and their gradients by weights alone read goes into the
// weights, where those are parameters, and behind the gradients, where these are fewer. Exact for powers of
// two, else rounded once more.
graph::Graph scale_weights(const graph::Graph& graph);

// A convolution over planes (plan/planar.h) that a split along the channels alone reads: one for each part,
// which writes it where it is wanted. One pass makes all of them (lower/joined_step.h).
graph::Graph split_convolutions(const graph::Graph& graph);

// The gradient by weights of a convolution over planes whose cotangent is joined of some along the channels:
// one for each, which reads it where it lies. One pass makes all of them.
graph::Graph split_weight_gradients(const graph::Graph& graph);

}  // namespace superstep::target::cpu
