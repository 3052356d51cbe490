// Values made from shapes and attributes.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// A tensor of one repeated value, as a node (a large constant would be stored and printed whole).
Var constant_of_shape(Builder& builder, ElementType element, const Shape& shape, double value = 0);
Var shape_of(Var x);                         // i64[rank]
Var element_count(Var x);                    // i64[]
Var range(Var start, Var limit, Var delta);  // constant scalars of one numeric type

std::span<const Definition> creation_operators();

}  // namespace superstep::op
