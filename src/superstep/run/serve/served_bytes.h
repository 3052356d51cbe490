// A model in bytes, as it is served: calibrated on samples of the data that are asked.
#pragma once

#include <optional>

#include "superstep/run/model.h"
#include "superstep/run/serve/calibrate.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/task.h"

namespace superstep::run {

// Throws Error (invalid_argument) for options of bytes where none were asked for.
void check_int8_options(const InferSettings& settings);

// The report is told of what went to bytes and what did not; the ONNX file is written where one was asked
// for.
QuantizedModel quantized(const InferSettings& settings, const Model& model,
                         const std::optional<Weights>& weights, const Task& task, ThreadPool& pool,
                         InferReport& report);

}  // namespace superstep::run
