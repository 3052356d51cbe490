// Training: from a workload and its data to a model, with everything written down on the way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/run/ranks/gradient_exchange.h"
#include "superstep/run/train/schedule.h"
#include "superstep/run/train/train_settings.h"
#include "superstep/target/target.h"

namespace superstep::workload {
class Task;
}

namespace superstep::run {

class TrainObserver;

struct TrainOptions {
  std::filesystem::path out;       // the run's folder; empty: nothing is written
  std::filesystem::path part_of;   // the folder of the runs that it is one of, for who goes on; empty: none
  bool resume = false;             // `out` holds a run: go on with it
  double checkpoint_seconds = 30;  // between checkpoints within an epoch
  bool measure_steps = false;      // time every step of the plan (slower)
  bool tune = false;               // micro-batch and threads by a timed search (run/tune.h)
  TrainObserver* observer = nullptr;  // told what happens (run/train/train_observer.h); not owned
  ExchangeMode exchange = ExchangeMode::overlapped;  // of gradients between ranks
  std::string validate =
      {};                  // samples that are looked at when it ends (samples_to_validate() in validation.h)
  double data_memory = 0;  // bytes that samples of files may take; 0: a quarter of what is free
  int data_threads = 0;    // that make batches ahead; 0: chosen (feeder.h)
  // Above 0: the run is rehearsed, not made. It is set up as it would be, trains for so many seconds (three
  // steps at least) and validates once; nothing is written, and the report says what the run would take.
  double rehearsal_seconds = 0;
  // Told before the first step, a line each: what of a model file is trained, and for which batch it will be
  // written; and at the end, where not all samples were validated on.
  std::function<void(const std::string&)> tell = {};
  // Given what was compiled, before the first step and before anything is told.
  std::function<void(const target::PlanSummary&)> planned = {};
};

struct TrainReport {
  std::vector<Metric> metrics;  // throughput, step_time, epoch_time, compile_time, loss, quality
  std::int64_t steps = 0;
  double epochs = 0;
  std::string goal;      // "r2 >= 0.7"; empty: until the epochs or steps are over
  bool reached = false;  // that goal
  int gave_up = 0;       // epochs without a gain after which the recipe ended the run; 0: it did not
  target::PlanSummary plan;
  std::int64_t validated =
      0;                // samples, the first behind those of training, that the quality at the end is of
  std::string recipe;   // "published: adamax at 0.0001; ..."; of the recipe, whatever else was asked for
  nlohmann::json task;  // what the data were
  std::shared_ptr<const workload::Task> data;  // and they themselves
};

// Trains until the epochs, the steps or the target are reached. On Ctrl-C, heard within a step and within an
// evaluation too, it writes a checkpoint of the last whole step and throws Error (interrupted). Throws Error
// (diverged) when the loss is no longer finite, with the step, and leaves the last checkpoint before that.
//
// A rehearsal (TrainOptions) reports step_time, expected_training_time, expected_validation_time and
// expected_time of the whole run, without its set-up, and the plan; steps and epochs are those of the run
// that was not made.
TrainReport train(const TrainSettings& settings, const TrainOptions& options);

}  // namespace superstep::run
