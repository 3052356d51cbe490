// In a training step: sums over large values that are made of fewer of them.
#pragma once

#include <optional>

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// A product of a value and one number.
struct Scaled {
  graph::ValueId value;
  double factor;
};

// What a node multiplies by a number: Mul by a constant, Neg, the sum of a value with itself; of f32 or bf16.
std::optional<Scaled> scaled_by_number(const graph::Graph& graph, const graph::Node& node);

// Whether a factor may be applied behind a sum of so many terms instead of in front of it: neither would
// leave the range of f32 sooner than the other. It may be as small as one over their number, as that of a
// mean is: the sum makes up for it.
bool is_moderate_behind(double factor, std::int64_t terms);

// Constant factors of what products of matrices, sums, and gradients of convolutions by their weights read go
// to the other operand or behind the sum, where that is a quarter as large or less, and where nobody else
// reads what lies between. Exact for powers of two, else rounded once more.
graph::Graph scale_behind_sums(const graph::Graph& graph);

// The sum over the rows of a product of matrices, which nobody else reads, is the product of the sum of the
// rows of its left operand, in f32: the gradient of what is taken off all samples in front of a dense layer.
graph::Graph sum_before_products(const graph::Graph& graph);

// Sums and means of squares that nobody else reads, in f32, square as they sum: a loss by squares.
graph::Graph sum_squares(const graph::Graph& graph);

}  // namespace superstep::target::cpu
