// The loops of optimisers. Internal to the kernels.
#pragma once

#include "superstep/base/element_type.h"
#include "superstep/target/cpu/kernels/elementwise/optimizer.h"

namespace superstep::kernels {

struct OptimizerRun {
  const Optimizer* rule;
  OptimizerScalars scalars;
  float correction1, correction2;  // 1 / (1 - beta^t)
  const float* const* gradients;
  float *parameters, *first, *second;  // first and second: state arrays, null where the rule has none
  bf16* copy;                          // null when not asked for
};

using OptimizerLoop = void(const OptimizerRun& run);

// For the instruction set in force.
OptimizerLoop* optimizer_loop(const Optimizer& optimizer);

using NormLoop = double(const float* const* gradients, std::int64_t buffers, std::int64_t count);
NormLoop* norm_loop();

}  // namespace superstep::kernels
