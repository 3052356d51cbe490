// Outputs that a caller lays over inputs.
#pragma once

#include <span>

#include "superstep/base/function_ref.h"
#include "superstep/base/tensor.h"

namespace superstep::target::cpu {

// Whether an output shares memory with an input: steps write outputs before the last input was read.
bool overlap(std::span<const Tensor> inputs, std::span<const Tensor> outputs);

// Calls `run` with memory of its own in place of each such output, and copies what it wrote there.
void run_apart(std::span<const Tensor> inputs, std::span<Tensor> outputs,
               FunctionRef<void(std::span<Tensor> outputs)> run);

}  // namespace superstep::target::cpu
