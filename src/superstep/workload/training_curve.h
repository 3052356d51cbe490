// What programs of a field keep beside a training while it goes on, as DeePMD-kit's lcurve.out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::workload {

// A task that is one keeps such a file in the folder of a run.
class KeepsCurve {
 public:
  virtual ~KeepsCurve() = default;
  // Names and values of what a line says of these samples, whose answers are the model's outputs, with the
  // loss as this epoch (from 0) counts it.
  virtual nlohmann::json curve_point(std::span<const std::int64_t> indices, std::span<const Tensor> outputs,
                                     std::uint64_t epoch) const = 0;
  // After each epoch, and at the end of a run that stops within one: `log` holds the lines of the run's
  // metrics.jsonl so far; those with a point have `validation_errors` and `training_errors`.
  virtual void write_curve(const std::filesystem::path& folder,
                           const std::vector<nlohmann::json>& log) const = 0;
};

}  // namespace superstep::workload
