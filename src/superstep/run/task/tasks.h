// The tasks, one file a workload; task/tasks.cpp is the table.
#pragma once

#include "superstep/data/bragg_dataset.h"
#include "superstep/run/task.h"

namespace superstep::run {

std::unique_ptr<Task> open_bragg_task(const TaskSettings& settings);
// A task over patches that are in memory already (copied).
std::unique_ptr<Task> make_bragg_task(const data::BraggDataset& data);
std::unique_ptr<Task> open_mlp_task(const TaskSettings& settings);
std::unique_ptr<Task> open_cifar10_task(const TaskSettings& settings);

// Mean and percentiles of distances between true and found centres, px: error_px_mean, _p50, _p75, _p95,
// _p995.
std::vector<Metric> bragg_error_metrics(std::vector<double> errors);

}  // namespace superstep::run
