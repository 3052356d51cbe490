// Reductions over axes. Axes may be negative; an empty list means all of them. With `keep` the reduced axes
// stay with extent 1. The functions write axes as an input (operator set 18).
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

using Axes = std::vector<std::int64_t>;

Var reduce_sum(Var x, const Axes& axes = {}, bool keep = false);
Var reduce_mean(Var x, const Axes& axes = {}, bool keep = false);
Var reduce_prod(Var x, const Axes& axes = {}, bool keep = false);
Var reduce_max(Var x, const Axes& axes = {}, bool keep = false);  // ties share the derivative
Var reduce_min(Var x, const Axes& axes = {}, bool keep = false);
Var reduce_l1(Var x, const Axes& axes = {}, bool keep = false);          // sum |x|
Var reduce_l2(Var x, const Axes& axes = {}, bool keep = false);          // sqrt(sum x^2)
Var reduce_sum_square(Var x, const Axes& axes = {}, bool keep = false);  // sum x^2
Var reduce_log_sum(Var x, const Axes& axes = {}, bool keep = false);     // log(sum x)
Var reduce_log_sum_exp(Var x, const Axes& axes = {}, bool keep = false);

// The position (i64) of the largest or smallest element along an axis; the first of equals.
Var argmax(Var x, std::int64_t axis, bool keep = false);
Var argmin(Var x, std::int64_t axis, bool keep = false);

// The axes that a reduction node reduces, sorted; what kernels ask. `given`: the axes input, null when it is
// left out.
std::vector<int> reduced_axes(const Attributes& attributes, int rank, const std::vector<std::int64_t>* given);

std::span<const Definition> reduction_operators();
std::span<const Definition> arg_operators();

}  // namespace superstep::op
