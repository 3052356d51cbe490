// BraggNN's parts, that its files share: model.cpp (with the workload itself), data.cpp, pictures.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/physics/xray/bragg_dataset.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

// Patches of diffraction peaks and their centres.
std::unique_ptr<Task> open_bragg_peaks(const TaskSettings& settings, const Options& model);

// Mean and percentiles of distances between true and found centres, px: error_px_mean, _p50, _p75, _p95,
// _p995.
std::vector<Metric> bragg_error_metrics(std::vector<double> errors);

// Positions by the network beside the methods it replaces, on the same patches.
std::string present_bragg(const data::BraggDataset& peaks, const Predictions& found, ThreadPool& pool,
                          page::Page& page);

}  // namespace superstep::workload
