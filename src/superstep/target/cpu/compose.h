// Convolutions one behind the other with nothing between them.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// Where a convolution of few inputs (taps times channels) makes many channels, and one of a single tap reads
// these channels with nothing non-linear between, the second is a convolution of the first one's input with
// the product of both weights:
//   w2 (w1 * x + b1) + b2 = (w2 w1) * x + (w2 b1 + b2).
// The graph so rewritten, with the gradients that a training step makes of them. With g the weight gradient
// and s the sum of dy that the composed convolution has,
//   dw2 = g w1^T + s b1^T,   and to dw1 and db1 the second convolution adds w2^T g and w2^T s;
// what it would send back through the channels between is not made. Products of weights belong to the phase
// update where only updates read them: once a step, not once a micro-batch. Results differ from those of the
// graph by rounding. In BraggNN each of the three convolutions of the attention sums 9 terms instead of 64.
//
// Done where that halves the terms of a sum, at least. Weights and biases must not depend on the inputs.
graph::Graph compose_convolutions(const graph::Graph& graph);

}  // namespace superstep::target::cpu
