// What derivative rules share. An invalid Var stands for a zero cotangent or tangent.
#pragma once

#include <vector>

#include "superstep/op/core/definition.h"

namespace superstep::op {

// The sum of those that are valid; invalid when none is.
Var sum_valid(Var a, Var b);

// A constant of rank 0 and of x's element type.
Var constant_like(Var x, double value);

// Adds over the axes that broadcasting a tensor of `shape` to x's shape would have repeated.
Var sum_to(Var x, const Shape& shape);

// Broadcasts x to `shape`; x itself when it has that shape.
Var expand_to(Var x, const Shape& shape);

// The rules of operators whose derivative is zero wherever it exists (Floor, Less, ArgMax, Shape).
std::vector<Var> zero_vjp(const DerivativeContext& context, std::span<const Var> cotangents,
                          const std::vector<bool>& wanted);
std::vector<Var> zero_jvp(const DerivativeContext& context, std::span<const Var> tangents);

// The definition of such an operator with exactly `inputs` inputs.
Definition definition_without_slope(std::string_view name, int opset, int inputs, const Traits& traits,
                                    decltype(Definition::infer) infer,
                                    decltype(Definition::evaluate) evaluate);

// As many invalid Vars as the node has inputs: what a vjp rule fills in.
std::vector<Var> no_cotangents(const DerivativeContext& context);

// The elements of an integer input that is constant; throws Error (unsupported) otherwise.
std::vector<std::int64_t> constant_integers(Var x);
const Tensor* constant_data(Var x);  // null when x is not constant

Shape checked_shape(std::vector<std::int64_t> extents);  // refuses negative extents as bad_graph

}  // namespace superstep::op
