// What the loops of softmax down columns are given. Internal to the kernels.
#pragma once

#include "superstep/target/cpu/kernels/rows/softmax_columns.h"

namespace superstep::kernels {

using SoftmaxColumnsFunction = void(const SoftmaxColumns& s, const void* x, void* y);

}  // namespace superstep::kernels
