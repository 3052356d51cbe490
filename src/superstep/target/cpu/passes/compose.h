// Linear operators one behind the other, multiplied with each other before they meet the data.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// A model in which sums run over few terms instead of many. Where a convolution of few inputs (r - 1 = taps
// times channels) makes many channels, and one of a single tap reads these with nothing between, what comes
// out is linear in r columns, X = (the inputs under each window, and 1):
//   y = w2 (w1 * x + b1) + b2 = a X,   a = (w2 w1, w2 b1 + b2).
// Three forms are rewritten, where that halves the terms of a sum at least:
//   - the second convolution becomes one of the first one's input, of weights w2 w1;
//   - a product over the channels of two such values, (a X)^T (b X), becomes (m X)^T X with m = b^T a;
//   - a product p y^T that a convolution of one tap reads, w (p (a X)^T)^T + c, becomes (w a) (p X^T)^T + c.
// So the three convolutions of BraggNN's attention sum 9 terms instead of 64, its scores and its weighted sum
// 10 instead of 32. Results differ from the model's by rounding. Inputs, states, outputs and their names
// stay; derivatives are taken of what this gives. Weights and biases must not depend on the inputs.
graph::Graph compose_linear(const graph::Graph& model);

}  // namespace superstep::target::cpu
