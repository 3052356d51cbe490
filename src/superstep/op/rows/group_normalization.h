// Normalisations over groups, windows and norms. x is [N, C, ...] unless said otherwise.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// Mean and variance over each group of channels and the spatial axes; scale and bias [C] (or one a group).
Var group_normalization(Var x, Var scale, Var bias, std::int64_t groups, double epsilon = 1e-5);
// x / sqrt(mean of x^2 over the axes from `axis` on + epsilon) * scale.
Var rms_normalization(Var x, Var scale, std::int64_t axis = -1, double epsilon = 1e-5);
Var mean_variance_normalization(Var x, const std::vector<std::int64_t>& axes = {0, 2, 3});
// x / (bias + alpha / size * sum of x^2 over `size` neighbouring channels)^beta (Krizhevsky et al., 2012).
Var local_response_normalization(Var x, std::int64_t size, double alpha = 1e-4, double beta = 0.75,
                                 double bias = 1);
Var lp_normalization(Var x, std::int64_t axis = -1, std::int64_t p = 2);  // x / its 1- or 2-norm

std::span<const Definition> group_normalization_operators();

}  // namespace superstep::op
