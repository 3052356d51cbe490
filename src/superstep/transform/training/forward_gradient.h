// Gradients without a backward pass: the derivative of a loss along K random directions v_k, which one
// forward pass computes beside the loss, says how far to go along each.
//
//   g = (1 / K) sum over k of (grad f . v_k) v_k
//
// has the gradient as its mean, whatever f, where the components of v are independent, of mean zero and
// variance one. Of normal ones, which are drawn here, E|g|^2 = (n + 1 + K) / K |grad f|^2 for n parameters:
// the variance is (n + 1) / K |grad f|^2 (A. Baydin et al., Gradients without Backpropagation,
// arXiv:2202.08587; several directions: L. Fournier et al., arXiv:2410.17764).
//
// Nothing of the forward pass waits for a backward one: every activation goes as soon as the next layer has
// it and its tangents. What is kept besides are the directions, K numbers a parameter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/op/core/builder.h"

namespace superstep::transform {

struct ForwardGradientOptions {
  int tangents = 1;        // K
  std::uint64_t seed = 0;  // of the directions
  // A parameter's number among all of the model, so that its directions are the same whichever others are
  // estimated with it. Empty: in order.
  std::vector<std::uint32_t> streams;
};

// The estimates, in the shapes of `parameters`; invalid where `loss` does not depend on one. `counter` (i64
// scalar: the step) addresses the directions; op/elementwise/random.h says how. Directions and directional
// derivatives belong to phase forward, and are the same for all parts of a batch; K numbers, the derivatives,
// pass from backward to update and are averaged over the parts; the sums are in phase update. Leaves the
// builder in that phase. Throws Error (unsupported) naming a node whose operator has no forward derivative.
std::vector<op::Var> forward_gradient(op::Builder& builder, op::Var loss, std::span<const op::Var> parameters,
                                      op::Var counter, const ForwardGradientOptions& options);

// The graph with those nodes of phase forward that stand behind the first `model_nodes` where their inputs
// are there: tangents beside the values that they belong to, so that no value waits for them.
graph::Graph with_tangents_in_place(const graph::Graph& graph, std::size_t model_nodes);

}  // namespace superstep::transform
