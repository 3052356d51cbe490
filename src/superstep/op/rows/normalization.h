// Normalisations. Each is the composition its decomposition shows; x is [N, C, ...] unless said otherwise.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// (x - mean) / sqrt(variance + epsilon) * scale + bias, a number of each a channel: with given statistics.
Var batch_normalization(Var x, Var scale, Var bias, Var mean, Var variance, double epsilon = 1e-5);

// With the statistics of the batch (variance without Bessel's correction), which are mixed into the running
// ones: running * momentum + batch * (1 - momentum). `over_parts` (an attribute of ours, not ONNX's): the
// statistics of all parts of the batch together (op/rows/parts_mean.h).
struct BatchNormalized {
  Var y, running_mean, running_variance;
};
BatchNormalized batch_normalization_training(Var x, Var scale, Var bias, Var mean, Var variance,
                                             double epsilon = 1e-5, double momentum = 0.9,
                                             bool over_parts = false);

// Over all axes from `axis` on, with scale and (optional) bias that broadcast to x.
Var layer_normalization(Var x, Var scale, Var bias = {}, std::int64_t axis = -1, double epsilon = 1e-5);
// Over the spatial axes of each channel of each sample; scale and bias [C].
Var instance_normalization(Var x, Var scale, Var bias, double epsilon = 1e-5);

std::span<const Definition> normalization_operators();

}  // namespace superstep::op
