// What a node or a value is, as passes, plan and lowering ask it of a graph alone.
#pragma once

#include <optional>

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

// The value of a constant all of whose elements are equal.
std::optional<double> uniform_constant(const Graph& graph, ValueId id);

// What a conversion of precision reads; nothing where `id` is not made by one, or comes from f16, which
// rounds.
std::optional<ValueId> before_cast(const Graph& graph, ValueId id);

// A parameter behind the conversions of precision in front of it; f16 is left to round it.
ValueId behind_casts(const Graph& graph, ValueId id);

// The node that makes a computed value.
const Node& producer_of(const Graph& graph, ValueId id);

// An input that is left out, or a constant of zeros.
bool left_out_or_zero(const Graph& graph, const Node& node, std::size_t input);

// A constant of zeros, or a ConstantOfShape of zeros.
bool is_zero(const Graph& graph, ValueId id);

// ScatterND with one index a row: f32 added to what is there.
bool adds_rows(const Graph& graph, const Node& node);

// The same, and ScatterElements: f32 added to zeros.
bool adds_rows_to_zeros(const Graph& graph, const Node& node);
bool adds_elements_to_zeros(const Graph& graph, const Node& node);

// Whether a convolution [out, in, taps...] over x would be one over window columns.
bool has_few_channels(const Node& node, const graph::ValueType& x, const Shape& weights);

// Products of bytes, summed in i32.
bool is_integer_product(const Node& node);

// A DequantizeLinear of sums that nobody else reads: what element-wise followers are fused with, as with a
// product.
bool is_dequantized_product(const Graph& graph, const Node& node);

// A DequantizeLinear of u8 with one scale and one zero point, both known: what an epilogue may read as bytes.
bool is_read_bytes(const Graph& graph, const Node& node);

// The optimiser nodes: inputs parameter, gradient, moments...; see op/training/optimizer.h.
bool is_optimizer(const Node& node);

}  // namespace superstep::target::cpu
