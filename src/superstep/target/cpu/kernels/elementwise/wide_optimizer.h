// Optimisers over f64 parameters, by the formulas of optimizer.h, to the digits of f64: buffers begin at
// zero, and the first step is as any other.
//
// Slots: inputs the learning rate, the gradient and, for adam, adamw and adamax, the number of steps made
// before (i64); outputs p, then the state arrays in the order (momentum or m), (v or u), as far as the rule
// has them.
#pragma once

#include "superstep/target/cpu/kernels/elementwise/optimizer.h"

namespace superstep::kernels {

struct WideOptimizer {
  OptimizerRule rule = OptimizerRule::sgd;  // none of adagrad
  std::int64_t count = 0;                   // parameters
  ElementType rate = ElementType::f32;      // of the learning rate: f32 or f64
  ElementType gradient = ElementType::f64;  // f32 or f64; sums over micro-batches are f32
  double momentum = 0;                      // sgd, rmsprop; 0 has no state
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
};

std::size_t state_arrays(const WideOptimizer& optimizer);  // 0, 1 or 2

Prepared prepare(const WideOptimizer& optimizer);

}  // namespace superstep::kernels
