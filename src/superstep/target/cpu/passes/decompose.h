// Operators without a kernel of their own that are made of operators that have one.
#pragma once

#include <string_view>

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// The graph with normalisations at inference that follow a convolution folded into it, also those that were
// frozen to a product and a sum: its weights take the factor of each channel, and the shift becomes its bias.
graph::Graph fold_normalizations(const graph::Graph& graph);

// The graph with such operators replaced by what they are made of: normalisations by a factor and a shift a
// channel, global pooling by reductions, attention by products and softmax, recurrences
// that the kernels do not take by their steps.
graph::Graph decompose(const graph::Graph& graph);

// Operators that are always replaced so.
bool is_composite(std::string_view op);

}  // namespace superstep::target::cpu
