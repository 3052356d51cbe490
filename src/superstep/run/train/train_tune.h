// The search for micro-batch and threads, on a training step and its own data.
#pragma once

#include "superstep/run/model.h"
#include "superstep/run/task.h"
#include "superstep/run/tune.h"

namespace superstep::run {

// `plan` without a micro-batch. Throws Error (invalid_argument) where there are several ranks.
Tuning tune_training(const target::Target& target, const Model& model, const Task& task,
                     const target::CompileOptions& plan);

}  // namespace superstep::run
