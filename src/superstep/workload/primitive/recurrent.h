// What the recurrent workloads share.
#pragma once

#include "superstep/workload/layers.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {

// The input x [N, steps, inputs], with the steps first: samples come first outside, steps in ONNX's recurrent
// operators.
Var sequence_input(Builder& b, std::int64_t batch, std::int64_t steps, std::int64_t inputs);

Recipe mse_by_adam(std::int64_t batch, double epochs);

}  // namespace superstep::workload
