// Learning rates over a training run.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "superstep/workload/schedule.h"

namespace superstep::run {

// A recipe's schedule with the rate of this run.
struct Schedule {
  using Kind = workload::Schedule::Kind;
  workload::Schedule shape;
  double peak = 1e-3;  // learning rate after the warm-up
};

// A step, from 0, of a run of `steps`.
struct Moment {
  std::int64_t step = 0, steps = 0;
  std::int64_t steps_an_epoch = 1;
};

// The rate of a step: the warm-up, then what Schedule::Kind says. Triangles (L. Smith, WACV 2017) and decays
// are counted from the first step of the run, warm-up included; a cosine begins after it. `reduced` is what a
// plateau has made of the peak (Plateau::reduced).
double learning_rate(const Schedule& schedule, const Moment& moment, double reduced = 1);

std::int64_t warm_up_steps(const workload::Schedule& shape, const Moment& moment);

// What a run remembers of the metric that its schedule watches: the state of a reduction on a plateau.
struct Plateau {
  double reduced = 1;          // of the peak
  std::optional<double> best;  // seen so far
  int waited = 0;              // epochs since the last gain or reduction
  int without_gain = 0;        // epochs since the last gain

  // As good is no gain; any number is one on what is none.
  bool gains(double value, bool higher_is_better) const {
    return !best || std::isnan(*best) || (higher_is_better ? value > *best : value < *best);
  }
};

// After an epoch that measured `value`. Rates are reduced after `patience` epochs without a gain, never below
// the lowest, and not while they warm up; then it waits as long again.
void watch(Plateau& plateau, const workload::Schedule& shape, double value, bool gained, bool warming_up);

// Whether there was no gain for so long that the training ends.
bool gives_up(const Plateau& plateau, const workload::Schedule& shape);

nlohmann::json to_json(const Schedule& schedule);

}  // namespace superstep::run
