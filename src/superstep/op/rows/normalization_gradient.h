// The derivatives of normalisations in the form that targets have kernels for.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// superstep.LayerNormalizationGradient: what LayerNormalization over the axes from `axis` on, with a scale of
// exactly those extents, sends back.
struct LayerNormalizationGradient {
  Var x, scale, bias;
};
LayerNormalizationGradient layer_normalization_gradient(Var dy, Var x, Var scale, std::int64_t axis,
                                                        double epsilon);

// The cotangents of x, scale and bias of BatchNormalization in training (statistics of the batch;
// `over_parts`: of all parts of a batch, and then those of scale and bias are this part's): Ioffe and
// Szegedy, Batch Normalization, ICML 2015, section 3.
struct BatchNormalizationGradient {
  Var x, scale, bias;
};
BatchNormalizationGradient batch_normalization_gradient(Var dy, Var x, Var scale, double epsilon,
                                                        bool over_parts = false);

std::span<const Definition> normalization_gradient_operators();

}  // namespace superstep::op
