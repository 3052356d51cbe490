// f16 is a type to store values in: the processors meant here have no f16 multiply-adds that sum in f32.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// The graph with products, convolutions, windows, reductions, normalisations and recurrences of f16 values
// computed in f32 between conversions, which is what these operators mean: they compute at least in f32 and
// round once (op/core/definition.h). Element-wise operators read and write f16 themselves; moves copy it.
// Values and states keep their types.
graph::Graph widen_half(const graph::Graph& graph);

}  // namespace superstep::target::cpu
