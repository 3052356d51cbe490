// How fast a sitting of a training run was, as metrics.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/run/ranks/gradient_exchange.h"

namespace superstep::run {

struct SittingTimes {
  std::int64_t batch = 0;                 // samples per step, of all ranks
  std::int64_t steps_an_epoch = 1;        // those of the first one are warm-up
  std::span<const double> step_seconds;   // of every step of the sitting; not empty
  double elapsed = 0, waited = 0;         // seconds: the whole sitting, and waiting for data in it
  double flops = 0, compile_seconds = 0;  // of a step; of its plan
  std::optional<double> to_solution;      // seconds, of all sittings; none where the target was not reached
};

// throughput, throughput_with_data, step_time, flops_rate, data_wait, time_to_solution, compile_time. Steady
// state: the steps after the first epoch where there is more than one (measurement protocol 1.4).
std::vector<Metric> speed_metrics(const SittingTimes& times);

struct RehearsalTimes {
  std::span<const double> step_seconds;  // of every step that was tried; the first is warm-up
  std::int64_t steps = 0;                // that the run has still to make
  double epochs = 0;                     // and the epochs that these end
  // Seconds: of the validation after each epoch, and of the one at the end.
  double validation = 0, last_validation = 0;
  double compile_seconds = 0;
};
// step_time, expected_training_time, expected_validation_time, expected_time (their sum), compile_time. What
// is expected is predicted: by the median step, and from the tenth to the nine tenths of the steps.
std::vector<Metric> rehearsal_metrics(const RehearsalTimes& times);

// Medians of what the exchange of gradients took, for runs of several ranks.
std::vector<Metric> exchange_metrics(const GradientExchange& exchange);

}  // namespace superstep::run
