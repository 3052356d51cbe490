// What a model said about samples of a task, to be looked at in the task's own field.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "superstep/base/tensor.h"

namespace superstep::run {

struct Predictions {
  std::string model;                      // in words: "braggnn, bf16"
  std::span<const std::int64_t> indices;  // of the task's samples; at least one
  std::span<const Tensor> outputs;        // for them, as Task::quality() has them
  double seconds = 0;                     // that they took, data included
};

}  // namespace superstep::run
