// Serving: a trained workload applied to a file, and the latency and throughput of doing so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/run/train.h"
#include "superstep/target/target.h"

namespace superstep::run {

// The parameters of a finished or interrupted run, and what the model was built with.
struct Weights {
  TrainSettings settings;
  std::map<std::string, Tensor> states;
  std::string where;  // the file they came from
};

// The best checkpoint of a run's folder, else its newest. Throws Error (not_found, bad_file).
Weights load_weights(const std::filesystem::path& folder);

struct InferSettings {
  std::string workload;
  std::filesystem::path weights;  // a run's folder; empty: initial weights (for throughput alone)
  std::filesystem::path input;    // empty: generated data
  std::filesystem::path output;   // HDF5; empty: nothing is written
  std::string backend = "cpu";
  std::string precision;  // empty: that of the run, or f32
  std::int64_t batch = 512;
  std::int64_t samples = 0;  // 0: all
  int threads = 1;
  bool measure_steps = false;  // time every step of the plan (slower)
};

struct InferReport {
  std::vector<Metric> metrics;  // throughput, latency_*, and the quality where the truth is known
  std::int64_t samples = 0;
  target::PlanSummary plan;
};

// Throws Error naming the file and data set.
InferReport infer(const InferSettings& settings);

// Latency of single calls of a compiled model: `calls` timed ones after a warm-up. Gives latency_mean, _p50,
// _p90, _p99 (nearest rank; those for which there are enough calls), and throughput.
std::vector<Metric> measure_serving(target::Executable& executable, std::int64_t batch,
                                    std::span<const Tensor> inputs, std::int64_t calls);

}  // namespace superstep::run
