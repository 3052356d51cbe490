// Operators that keep the elements and change the shape, and broadcasting by Expand. Any element type.
// Shapes and axes are inputs that must be constant when the graph is compiled.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// The element count must agree; x itself when it has that shape.
Var reshape(Var x, const Shape& shape);
Var flatten(Var x, std::int64_t axis = 1);  // to two dimensions: those before `axis`, and the rest
Var squeeze(Var x, const std::vector<std::int64_t>& axes);
Var unsqueeze(Var x, const std::vector<std::int64_t>& axes);  // axes of the result
Var expand(Var x, const Shape& shape);                        // x itself when it has that shape

std::span<const Definition> view_operators();

}  // namespace superstep::op
