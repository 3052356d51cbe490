// Softmax along one axis (the meaning since operator set 13), floating-point types.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

Var softmax(Var x, std::int64_t axis = -1);
Var log_softmax(Var x, std::int64_t axis = -1);
Var hardmax(Var x, std::int64_t axis = -1);  // 1 at the first largest element, 0 elsewhere

std::span<const Definition> softmax_operators();

}  // namespace superstep::op
