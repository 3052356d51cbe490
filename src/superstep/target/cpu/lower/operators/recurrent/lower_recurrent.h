// Which recurrent nodes have kernels; the others are unrolled before they are lowered (decompose.h).
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// LSTM and superstep.LSTMGradient in f32 with the default activations, without lengths, peepholes, clipping
// and coupled gates, with a multiple of 16 units.
bool has_lstm_kernel(const graph::Graph& graph, const graph::Node& node);

}  // namespace superstep::target::cpu
