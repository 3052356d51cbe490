// A model, or the whole training step of it, as an ONNX file for other programs.
#pragma once

#include <cstdint>
#include <filesystem>

#include "superstep/run/train/train.h"

namespace superstep::run {

struct ExportSettings {
  TrainSettings model;            // the workload or model file, its options, loss and optimiser
  std::filesystem::path weights;  // a run's folder; empty: initial weights
  std::filesystem::path out;
  bool training_step = false;  // forward, loss, backward and optimiser in one graph
  std::int64_t batch = 0;      // fixed; 0: left open, of a training step the workload's own
  int opset = 0;               // 0: the smallest that will do
};

// Writes the file atomically. A training step takes the model's inputs, the targets and `learning_rate`, and
// gives `loss` and, for each state NAME (parameters, moments, step), its next value as NAME.next: whoever
// runs it feeds these back as the inputs of those names. The step of a batch divides by its size, so that a
// training step is always of one batch. Throws Error (unsupported) naming a node that
// has no form in plain ONNX, or that cannot leave the batch open.
void export_onnx(const ExportSettings& settings);

}  // namespace superstep::run
