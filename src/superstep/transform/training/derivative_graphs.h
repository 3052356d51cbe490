// Derivatives of whole graphs, by the names of their inputs and outputs: what a user of a model wants, who
// did not build it. The functions of differentiate.h do the same while a graph is being built.
//
// Each gives a copy of the model that computes its own outputs and the derivatives besides; what is not
// needed is for passes to remove. `wrt` names inputs or states of floating type. A derivative that is zero
// everywhere is an output of zeros. Errors: not_found for a name that the model has not (with the nearest),
// invalid_argument for one of another kind, unsupported naming a node without a derivative.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "superstep/graph/graph.h"

namespace superstep::transform {

// The gradient of `output`, which must have one element: outputs "gradient/NAME", shaped like NAME.
graph::Graph gradient_graph(const graph::Graph& model, std::string_view output,
                            std::span<const std::string> wrt);

// Reverse mode. Inputs "cotangent/OUTPUT" for every floating output; outputs "gradient/NAME": the sum over
// outputs of (d OUTPUT / d NAME)^T cotangent.
graph::Graph vjp_graph(const graph::Graph& model, std::span<const std::string> wrt);

// Forward mode. Inputs "tangent/NAME"; outputs "tangent/OUTPUT" for every floating output: the sum over names
// of (d OUTPUT / d NAME) tangent.
graph::Graph jvp_graph(const graph::Graph& model, std::span<const std::string> wrt);

// All derivatives of all floating outputs: outputs "jacobian/OUTPUT/NAME", [OUTPUT's extents, NAME's
// extents]. Forward mode, a direction an element of `wrt`, where those are no more than the elements of the
// outputs, else reverse mode, a cotangent an element of the outputs; all directions share the evaluation of
// the model. The graph grows with their number: more than `most_jacobian_directions` are refused
// (invalid_argument).
graph::Graph jacobian_graph(const graph::Graph& model, std::span<const std::string> wrt);
inline constexpr std::int64_t most_jacobian_directions = 4096;

// The Hessian of `output`, which must have one element, times a vector. Inputs "vector/NAME"; outputs
// "gradient/NAME" and "hessian/NAME": the row of NAME of H v.
graph::Graph hessian_vector_product_graph(const graph::Graph& model, std::string_view output,
                                          std::span<const std::string> wrt);

}  // namespace superstep::transform
