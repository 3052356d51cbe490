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

// superstep.Adamax (Kingma and Ba, section 7.1), with an epsilon beside the gradient, so that nothing is
// divided by zero:
//   g = gradient + weight_decay * parameter
//   m' = beta1 m + (1 - beta1) g;  u' = max(beta2 u, |g| + epsilon);  t = step + 1
//   parameter' = parameter - rate / (1 - beta1^t) * m' / u'
// Inputs: parameter, gradient, m, u, step, rate; outputs: parameter', m', u'.
struct AdamaxAttributes {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
};
struct AdamaxStep {
  Var parameter, m, u;
};
AdamaxStep adamax(Var parameter, Var gradient, Var m, Var u, Var step, Var rate,
                  const AdamaxAttributes& attributes = {});

// superstep.RMSProp (T. Tieleman, G. Hinton, lecture 6.5, 2012) with the epsilon under the root and the rate
// within the momentum, as EfficientNet and MobileNetV3 are trained:
//   g = gradient + weight_decay * parameter
//   v' = decay v + (1 - decay) g^2;  b' = momentum b + rate g / sqrt(v' + epsilon);  parameter' = parameter -
//   b'
// v starts at one there, the buffer b at zero. Inputs: parameter, gradient, v, rate[, buffer]; outputs:
// parameter', v'[, buffer'].
struct RmspropAttributes {
  double decay = 0.9, momentum = 0, epsilon = 1e-3, weight_decay = 0;
};
struct RmspropStep {
  Var parameter, v, buffer;
};
RmspropStep rmsprop(Var parameter, Var gradient, Var v, Var rate, Var buffer = {},
                    const RmspropAttributes& attributes = {});

// superstep.Lamb (Y. You et al., ICLR 2020, algorithm 2): Adam's step with decoupled decay, as long for every
// tensor as its own parameters make it:
//   m' and v' as Adam's;  r = (m' / (1 - beta1^t)) / (sqrt(v' / (1 - beta2^t)) + epsilon) + decay parameter
//   parameter' = parameter - rate * |parameter| / |r| * r
// |.| is the root of the sum of squares; where either is zero their ratio is taken for 1. Inputs and outputs
// as Adam's.
struct LambAttributes {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0;
};
AdamStep lamb(Var parameter, Var gradient, Var m, Var v, Var step, Var rate,
              const LambAttributes& attributes = {});

// Whether a state of a training step is the optimiser's, or an average that goes with it: by its name
// (transform/training/training_step.h).
bool is_optimizer_state(std::string_view name);

std::span<const Definition> optimizer_operators();
std::span<const Definition> adaptive_optimizer_operators();  // Adamax RMSProp Lamb
std::span<const Definition> onnx_optimizer_operators();  // Adagrad Momentum Adam, of ai.onnx.preview.training

}  // namespace superstep::op
