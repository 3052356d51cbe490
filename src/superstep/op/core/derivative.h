// Derivatives of a part of a graph, both modes, by the rules of its operators: what rules of composite
// operators and the gradient checker are made of. Whole graphs are differentiated in room transform/.
#pragma once

#include <span>
#include <vector>

#include "superstep/op/core/definition.h"

namespace superstep::op {

// The first node of the part; nodes before it are not looked at.
std::size_t mark(const Builder& builder);

// Reverse mode: appends nodes to the builder that compute the cotangents of `inputs` from those of
// `outputs` (invalid: zero). A result is invalid where it is zero. Throws Error (unsupported) naming an
// operator on the way that has no rule.
std::vector<Var> reverse(Builder& builder, std::size_t first_node, std::span<const Var> outputs,
                         std::span<const Var> cotangents, std::span<const Var> inputs);

// Forward mode: the tangents of `outputs` from those of `inputs`.
std::vector<Var> forward(Builder& builder, std::size_t first_node, std::span<const Var> inputs,
                         std::span<const Var> tangents, std::span<const Var> outputs);

// Rules of an operator that is defined by its decomposition.
template <auto Decompose>
std::vector<Var> vjp_through(const DerivativeContext& context, std::span<const Var> cotangents,
                             const std::vector<bool>& wanted);
template <auto Decompose>
std::vector<Var> jvp_through(const DerivativeContext& context, std::span<const Var> tangents);

// What the two share: the decomposition on inputs of its own, so that an input given twice gets two
// cotangents. Integer inputs stay themselves: shapes and axes must be seen as constants.
using Decomposition = std::vector<Var> (*)(const DerivativeContext&);
std::vector<Var> vjp_through(Decomposition decompose, const DerivativeContext& context,
                             std::span<const Var> cotangents, const std::vector<bool>& wanted);
std::vector<Var> jvp_through(Decomposition decompose, const DerivativeContext& context,
                             std::span<const Var> tangents);

template <auto Decompose>
std::vector<Var> vjp_through(const DerivativeContext& context, std::span<const Var> cotangents,
                             const std::vector<bool>& wanted) {
  return vjp_through(Decompose, context, cotangents, wanted);
}
template <auto Decompose>
std::vector<Var> jvp_through(const DerivativeContext& context, std::span<const Var> tangents) {
  return jvp_through(Decompose, context, tangents);
}

// Evaluates by the decomposition, in f64 throughout; floating results are rounded once.
void evaluate_through(Decomposition decompose, const EvaluateContext& context);
template <auto Decompose>
void evaluate_through(const EvaluateContext& context) {
  evaluate_through(Decompose, context);
}

}  // namespace superstep::op
