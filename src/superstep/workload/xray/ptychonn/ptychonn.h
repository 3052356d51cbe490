// PtychoNN's parts, that its files share: model.cpp (with the workloads themselves), data.cpp, pictures.cpp.
#pragma once

#include <memory>
#include <string>

#include "superstep/workload/generated.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

// Diffraction patterns with the object under the probe, of the window that the model is built for: amplitude
// and phase, or the phase alone.
std::unique_ptr<Task> open_ptychonn_64(const TaskSettings& settings, const Options& model);
std::unique_ptr<Task> open_ptychonn_128(const TaskSettings& settings, const Options& model);

// The object under the probe, true and predicted, and the difference.
std::string present_ptychography(const Fields& fields, const Predictions& found, page::Page& page);

}  // namespace superstep::workload
