// What a machine is chosen for: a figure of a prediction, with its interval, and which way is better.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/machine/predict.h"

namespace superstep::lab {

enum class Goal : std::uint8_t { throughput, latency, time_to_quality, energy, cost };

const char* name_of(Goal goal);              // "time-to-quality"
Goal goal_from_name(std::string_view name);  // throws Error (invalid_argument), nearest name
const std::vector<std::string>& goal_names();
const char* unit_of(Goal goal);  // "samples/s", "s", "J", "" for money
bool larger_is_better(Goal goal);

// What turns seconds of a step into the other goals.
struct GoalContext {
  double recipe_samples = 0;  // that a training sees until its recipe ends
  double unit_power = 0;      // W of a unit; 0: not known
  double unit_price = 0;      // of a unit-hour, in whatever currency; 0: not known
};

struct Figure {
  double value = 0, low = 0, high = 0;  // the interval holds 80 %
  bool known() const { return value > 0; }
};

// A step is one that is fed over the host's link by as many loaders as it needs: throughput of all units;
// seconds of a step; seconds of a training; J a sample, all units at the power of their data sheet; price of
// a million samples (of a training: of all that its recipe sees). Not known where the context lacks a number,
// nor where the prediction does not fit.
Figure figure_of(Goal goal, const machine::Prediction& prediction, const GoalContext& context);

// Seconds of a fed step, loaders aside (machine/host_path.h), with their interval.
Figure fed_seconds(const machine::Prediction& prediction);

}  // namespace superstep::lab
