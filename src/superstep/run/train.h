// Training: from a workload and its data to a model, with everything written down on the way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/run/ranks/gradient_exchange.h"
#include "superstep/run/schedule.h"
#include "superstep/target/target.h"

namespace superstep::run {

struct Until {  // stop when a quality of the validation samples is `value` or better
  std::string metric;
  double value = 0;
};

// What a run is: written to config.json, and read back to resume it.
struct TrainSettings {
  std::string workload;  // of the zoo, or a model file (.onnx)
  std::string backend = "cpu";
  std::string precision = "f32";           // f32, bf16
  std::vector<std::string> model_options;  // name=value
  std::vector<std::string> shapes;         // of a model file: extents that it leaves open (user_model.h)
  std::string loss;                        // of a model file; empty: mean squared error
  std::filesystem::path data;
  std::int64_t samples = 0;
  std::int64_t batch = 0;         // 0: the workload's own
  std::int64_t micro_batch = 0;   // 0: the target chooses
  int replicas = 1;               // threads, each with a replica
  std::int64_t memory_limit = 0;  // bytes of the plan; 0: none
  double epochs = 0;       // 0: the workload's own; of the schedule, even if `steps` or `until` stop earlier
  std::int64_t steps = 0;  // stop after so many; 0: after the epochs
  std::optional<Until> until;
  std::string optimizer;     // empty: the workload's own
  double learning_rate = 0;  // peak; 0: the workload's own
  bool augment = true;       // where the data allow it
  std::uint64_t seed = 1;
  int batch_norm_span = 1;  // neighbouring ranks whose batches a normalisation's statistics are taken of
};
nlohmann::json to_json(const TrainSettings& settings);
TrainSettings train_settings_from_json(const nlohmann::json& json);  // throws Error (bad_file)

class TrainObserver;
class Task;

struct TrainOptions {
  std::filesystem::path out;                         // the run's folder; empty: nothing is written
  bool resume = false;                               // `out` holds a run: go on with it
  double checkpoint_seconds = 30;                    // between checkpoints within an epoch
  bool measure_steps = false;                        // time every step of the plan (slower)
  bool tune = false;                                 // micro-batch and threads by a timed search (run/tune.h)
  TrainObserver* observer = nullptr;                 // told what happens (run/train_observer.h); not owned
  ExchangeMode exchange = ExchangeMode::overlapped;  // of gradients between ranks
};

struct TrainReport {
  std::vector<Metric> metrics;  // throughput, step_time, epoch_time, compile_time, loss, quality
  std::int64_t steps = 0;
  double epochs = 0;
  bool reached = false;  // the target of `until`
  target::PlanSummary plan;
  nlohmann::json task;               // what the data were
  std::shared_ptr<const Task> data;  // and they themselves
};

// Trains until the epochs, the steps or the target are reached. On Ctrl-C it writes a checkpoint and throws
// Error (interrupted). Throws Error (diverged) when the loss is no longer finite, with the step, and leaves
// the last checkpoint before that.
TrainReport train(const TrainSettings& settings, const TrainOptions& options);

}  // namespace superstep::run
