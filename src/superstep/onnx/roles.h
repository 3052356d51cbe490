// Which constants of a graph its nodes take as weights, and which as something else: scalars, exponents,
// masks, frequencies, grids, statistics.
#pragma once

#include <set>

#include "superstep/graph/graph.h"

namespace superstep::onnx {

// Of the `constants` of a graph (ids of constants, or of inputs that stand for constants that were not read)
// those that are weights:
//   - what products, convolutions, normalisations, embeddings and recurrent cells take as such, also behind
//   what only moves, regroups or casts it (a QuantizeLinear does not: its gradient is zero);
//   - vectors with one element a feature that are added to the result of a product with weights: exporters
//     write biases of matrix products so;
//   - rows that are added to those of an embedding: positions, segments;
//   - such vectors that scale what was divided by its own deviation, or are added to that: normalisations
//     taken apart.
// Not weights: what is multiplied to become the argument of both a sine and a cosine, frequencies.
std::set<graph::ValueId> weights_of(const graph::Graph& graph, const std::set<graph::ValueId>& constants);

// Of `constants` the running means and variances of batch normalisations.
std::set<graph::ValueId> statistics_of(const graph::Graph& graph, const std::set<graph::ValueId>& constants);

}  // namespace superstep::onnx
