// The conductivity network's parts, that its files share: model.cpp (with the workload itself), data.cpp,
// pictures.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/workload/generated.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

// Sides of the micrographs that a model of these options takes; throws Error (invalid_argument).
int cathode_side(const Options& options);

// Sections of cathodes, generated or read, with the conductivity of the conductor and the effective one.
std::unique_ptr<Task> open_cathodes(const TaskSettings& settings, const Options& model);

// sigma_eff / sigma of some samples: as solved, and as predicted.
std::vector<double> true_ratios(const Fields& fields, std::span<const std::int64_t> indices);
std::vector<double> predicted_ratios(const Fields& fields, std::span<const std::int64_t> indices,
                                     const Tensor& sigma_eff);

std::string present_cathodes(const Fields& fields, const Predictions& found, page::Page& page);

}  // namespace superstep::workload
