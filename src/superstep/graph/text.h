// The textual form of a graph: print and parse are exact inverses, tensors included, bit by bit.
//
//   graph "mlp" {
//     input %x : f32[8,16]
//     state %w : f32[16,64] = base64"..."
//     constant %axes : i64[1] = [1]
//     %h : f32[8,64] = Gemm(%x, %w, %b) {alpha = 1.0, transB = 0} "dense1"
//     %g : f32[16,64] = superstep.Foo(%h, _) @backward
//     output "y" = %h
//     update %w = %w_next
//   }
// Names that are not made of letters, digits, '_', '.', '/', ':' and '-' are quoted: %"a b". `_` is an
// optional input or output left out. Tensors of up to 16 elements are written as lists (floats by the
// shortest decimals that read back exactly; nan, inf, -inf as words; other NaNs as base64), larger ones as
// base64 of their little-endian bytes. Attributes are integers (3), floats (3.0; a NaN with a payload is
// bits(7ff8000000000001)), strings ("SAME"), lists of one of these ([1, 2]; an empty one of floats or
// strings is floats[] or strings[]), tensors (tensor f32[2] = [1.0, 2.0]) and graphs (graph "then" {...}).
// A graph may start with `doc "what it is"`; comments run from // to the end of the line.
#pragma once

#include <string>
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/graph/graph.h"

namespace superstep::graph {

struct PrintOptions {
  bool data = true;  // false: large tensors are written as "..." (for people; cannot be parsed back)
};
std::string to_text(const Graph& graph, PrintOptions options = {});

// The error names line and column. The text may be hostile: it is refused or gives a graph whose names are
// unique and whose nodes read nothing that is computed later; whether the operators exist and the types are
// right is for the verifier.
Result<Graph> parse(std::string_view text);

// A Graphviz picture: nodes by operator and name, edges with their types, states and inputs as boxes.
std::string to_dot(const Graph& graph);

}  // namespace superstep::graph
