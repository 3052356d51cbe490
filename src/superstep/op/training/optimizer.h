// Optimiser updates as single nodes; their decompositions are plain ONNX. Parameters and buffers are of one
// floating-point type; the gradient may be of a narrower one and is widened first.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// superstep.Sgd: g = gradient + weight_decay * parameter; with momentum mu the buffer becomes
// b' = mu b + g and the direction is b' (or g + mu b' with Nesterov); parameter' = parameter - rate *
// direction. The buffer starts at zero. Inputs: parameter, gradient, rate[, buffer]; outputs: parameter'[,
// buffer'].
struct SgdAttributes {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
struct SgdStep {
  Var parameter, buffer;
};
SgdStep sgd(Var parameter, Var gradient, Var rate, Var buffer = {}, const SgdAttributes& attributes = {});

// superstep.Adam (Kingma and Ba, arXiv 1412.6980; decoupled: Loshchilov and Hutter, arXiv 1711.05101):
//   g = gradient + weight_decay * parameter (not when decoupled)
//   m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g^2;  t = step + 1
//   parameter' = parameter - rate (m' / (1 - beta1^t)) / (sqrt(v' / (1 - beta2^t)) + epsilon)
//                - rate * weight_decay * parameter (only when decoupled)
// `step` (i64[]) counts the steps made before this one: 0 at the first. `rate` is a scalar.
// Inputs: parameter, gradient, m, v, step, rate; outputs: parameter', m', v'.
struct AdamAttributes {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool decoupled = false;
};
struct AdamStep {
  Var parameter, m, v;
};
AdamStep adam(Var parameter, Var gradient, Var m, Var v, Var step, Var rate,
              const AdamAttributes& attributes = {});

std::span<const Definition> optimizer_operators();
std::span<const Definition> onnx_optimizer_operators();  // Adagrad Momentum Adam, of ai.onnx.preview.training

}  // namespace superstep::op
