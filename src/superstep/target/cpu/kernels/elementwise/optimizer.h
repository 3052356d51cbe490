// Optimisers over one flat array of f32 parameters, in one pass over memory.
//
// In the formulas g = gradient_scale * (g_1 + g_2 + ... + g_k), summed in that order, is the gradient of all
// buffers; p the parameter; t the step, counted from 1; lr the learning rate.
//   sgd:     g += weight_decay p; with momentum m: v = m v + (1 - dampening) g, where the first step (t = 1)
//            sets v = g; p -= lr (nesterov ? g + m v : v); without momentum p -= lr g
//   adam:    g += weight_decay p; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
//            p -= lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + epsilon)       (Kingma and Ba, ICLR 2015)
//   adamw:   p -= lr weight_decay p first, then adam without weight decay  (Loshchilov and Hutter, ICLR 2019)
//   adamax:  as adam, with u = max(b2 u, |g| + epsilon); p -= lr m / ((1-b1^t) u)
//   rmsprop: g += weight_decay p; v = b2 v + (1-b2) g^2; d = lr g / sqrt(v + epsilon); with momentum m:
//            m = momentum m + d and p -= m; without momentum p -= d
//   adagrad: g += weight_decay p; v += g^2; p -= lr g / (sqrt v + epsilon)
//
// Slots: inputs OptimizerScalars*, then the gradient buffers; outputs p, then the state arrays in the order
// (momentum or m), (v or u), as far as the rule has them, then the bf16 copy of the new p when asked for.
#pragma once

#include <cstdint>

#include "superstep/target/cpu/kernels/core/kernel.h"

namespace superstep::kernels {

enum class OptimizerRule : std::uint8_t { sgd, adam, adamw, adamax, rmsprop, adagrad };

// What changes from step to step: read from memory at each run.
struct OptimizerScalars {
  float learning_rate = 0;
  float gradient_scale = 1;  // 1 / micro-batches, times the clipping factor, over the loss scale
  std::int64_t step = 1;
};

struct Optimizer {
  OptimizerRule rule = OptimizerRule::sgd;
  std::int64_t count = 0;  // parameters
  std::int64_t gradient_buffers = 1;
  float momentum = 0;  // sgd, rmsprop; 0 has no state
  float dampening = 0;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999;  // 1 - beta is taken before rounding: in f32 it would be off by 1e-5
  float epsilon = 1e-8f;
  float weight_decay = 0;
  bool bf16_copy = false;
};

std::size_t state_arrays(const Optimizer& optimizer);  // 0, 1 or 2

Prepared prepare(const Optimizer& optimizer);

// Sum of squares of gradient_scale-free g = g_1 + ... + g_k, for clipping by the global norm.
// Slots: inputs the gradient buffers; outputs one f64 value.
struct GradientNorm {
  std::int64_t count = 0;
  std::int64_t gradient_buffers = 1;
};

Prepared prepare(const GradientNorm& norm);

}  // namespace superstep::kernels
