// The tasks, one file a workload; task/tasks.cpp is the table.
#pragma once

#include "superstep/physics/xray/bragg_dataset.h"
#include "superstep/run/task.h"

namespace superstep::run {

std::unique_ptr<Task> open_bragg_task(const TaskSettings& settings);
// A task over patches that are in memory already (copied).
std::unique_ptr<Task> make_bragg_task(const data::BraggDataset& data);
std::unique_ptr<Task> open_mlp_task(const TaskSettings& settings);
std::unique_ptr<Task> open_cifar10_task(const TaskSettings& settings);
// These make data of the size that the model is built for.
std::unique_ptr<Task> open_ptychonn_64_task(const TaskSettings& settings, const Options& model);
std::unique_ptr<Task> open_ptychonn_128_task(const TaskSettings& settings, const Options& model);
std::unique_ptr<Task> open_unet_task(const TaskSettings& settings, const Options& model);
std::unique_ptr<Task> open_uno_task(const TaskSettings& settings, const Options& model);
std::unique_ptr<Task> open_classifier_task(const TaskSettings& settings, const Options& model);
std::unique_ptr<Task> open_language_task(const TaskSettings& settings, const Options& model);
std::unique_ptr<Task> open_oscillation_task(const TaskSettings& settings, const Options& model);
std::unique_ptr<Task> open_random_sequence_task(const TaskSettings& settings, const Options& model);

// Mean and percentiles of distances between true and found centres, px: error_px_mean, _p50, _p75, _p95,
// _p995.
std::vector<Metric> bragg_error_metrics(std::vector<double> errors);

}  // namespace superstep::run
