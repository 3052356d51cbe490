// A gradient of weights and the optimiser that takes it, as one step: the gradient is made some rows at a
// time and used up while it is in the second-level cache, so that it never goes through memory.
//
// Floor: parameters and states read and written once, 24 bytes a parameter for Adam.
#pragma once

#include "superstep/target/cpu/kernels/core/kernel.h"
#include "superstep/target/cpu/kernels/elementwise/optimizer.h"
#include "superstep/target/cpu/kernels/product/matmul.h"

namespace superstep::kernels {

// product: one matrix (no batch), c f32, dense and row-major (its strides are not read), without epilogue and
// not accumulated: c is the gradient. rule: of product.rows * product.columns parameters, one buffer.
// Slots: inputs OptimizerScalars*, a, b; outputs as those of the optimiser.
// The bits are those of the product followed by the optimiser.
struct UpdatingProduct {
  Matmul product;
  Optimizer rule;
};

Prepared prepare(const UpdatingProduct& update);

}  // namespace superstep::kernels
