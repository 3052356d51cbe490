// Derivatives of graphs: the chain rule over the operators' own rules (op/core/definition.h).
//
// Each function adds nodes to the graph under construction. As in the rules, an invalid Var stands for a
// derivative that is exactly zero because nothing depends on the value; or_zeros() makes it a constant.
// The rules are written with public operators, so that what these functions add can be differentiated
// again, in either mode.
//
// Two levels: a guide decides which values carry a derivative (differentiation_guide.h), without any
// calculus; the functions here ask the rules of the nodes it names, and add up.
//
// New nodes are named "d(NAME)" after the node they belong to (its operator where it has no name) and take
// the phase that the builder is set to. Errors (unsupported) name the node and the operator that has no
// derivative.
//
// Reverse mode costs about twice the forward work, however many inputs there are (Griewank and Walther,
// Evaluating Derivatives, 2nd edition, section 4.4); forward mode about as much as the forward work for each
// tangent.
#pragma once

#include <span>
#include <vector>

#include "superstep/op/core/builder.h"

namespace superstep::transform {

using op::Builder;
using op::Var;

struct DifferentiationOptions {
  std::span<const Var> stop;  // values through which no derivative passes (stop_gradient)
};

// The gradients of a scalar (one element; a floating type) by each of `wrt`, in the shapes of `wrt`. Throws
// Error (invalid_argument) when the target has more than one element: vjp takes cotangents.
std::vector<Var> gradient(Builder& builder, Var target, std::span<const Var> wrt,
                          const DifferentiationOptions& options = {});

// Reverse mode: the sum over outputs of (d output / d wrt)^T cotangent, for each of `wrt`. `cotangents` have
// the types of `outputs`; an invalid one is zero.
std::vector<Var> vjp(Builder& builder, std::span<const Var> outputs, std::span<const Var> cotangents,
                     std::span<const Var> wrt, const DifferentiationOptions& options = {});

// Forward mode: the sum over inputs of (d output / d input) tangent, for each of `outputs`. `tangents` have
// the types of `inputs`; an invalid one is zero.
std::vector<Var> jvp(Builder& builder, std::span<const Var> outputs, std::span<const Var> inputs,
                     std::span<const Var> tangents, const DifferentiationOptions& options = {});

// The same along several directions: by direction, for each of `outputs`. Node by node, all directions of one
// before those of the next, so that nothing of the first nodes is read again after the last.
std::vector<std::vector<Var>> jvps(Builder& builder, std::span<const Var> outputs,
                                   std::span<const Var> inputs, std::span<const std::vector<Var>> directions,
                                   const DifferentiationOptions& options = {});

// The Hessian of a scalar by `wrt` times `vectors` (in the shapes of `wrt`), as the forward derivative of
// the gradient (Pearlmutter, Fast exact multiplication by the Hessian, Neural Computation 6, 1994).
std::vector<Var> hessian_vector_product(Builder& builder, Var target, std::span<const Var> wrt,
                                        std::span<const Var> vectors,
                                        const DifferentiationOptions& options = {});

// The derivative, or zeros in the type of `like`.
Var or_zeros(Var derivative, Var like);

}  // namespace superstep::transform
