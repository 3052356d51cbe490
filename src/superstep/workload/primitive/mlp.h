// A tiny multi-layer perceptron, 16-64-64-64-1 with ReLU: what is left of a step when there is hardly any
// arithmetic.
#pragma once

#include "superstep/workload/workload.h"

namespace superstep::workload {

// x f32 [N, 16] -> y f32 [N, 1].
Workload mlp();

}  // namespace superstep::workload
