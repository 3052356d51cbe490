// Reductions in f64 and in whole numbers. Internal to the kernels: prepare(Reduce) takes them.
#pragma once

#include "superstep/target/cpu/kernels/rows/reduce.h"

namespace superstep::kernels {

bool is_wide(ElementType type);  // f64, i32, u32, i64 or u64

// x and y of one wide type. Strides are set. A mean of whole numbers is refused.
Prepared prepare_wide_reduce(const Reduce& reduce, KernelInfo info);

}  // namespace superstep::kernels
