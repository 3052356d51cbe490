// Reductions in f64. Internal to the kernels: prepare(Reduce) takes them.
#pragma once

#include "superstep/target/cpu/kernels/rows/reduce.h"

namespace superstep::kernels {

// x and y f64. Strides are set.
Prepared prepare_wide_reduce(const Reduce& reduce, KernelInfo info);

}  // namespace superstep::kernels
