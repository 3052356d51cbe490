// The image auto-encoder's parts, that its files share: model.cpp (with the workload itself), data.cpp.
#pragma once

#include <memory>

#include "superstep/workload/task.h"

namespace superstep::workload {

struct AutoencoderSizes {
  std::int64_t size, width, bottleneck, bits;
  std::int64_t values() const { return bottleneck * (size / 4) * (size / 4); }  // of a code
  double bits_an_image() const;  // a code: its values, and the scale that rounded ones have
};
AutoencoderSizes autoencoder_sizes(const Options& options);  // throws Error (invalid_argument)

// Digits, made or read, which the model is to give back.
std::unique_ptr<Task> open_digits(const TaskSettings& settings, const Options& model);

}  // namespace superstep::workload
