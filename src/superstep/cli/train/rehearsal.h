// A dry run of a training: what it would take, after three seconds of it.
#pragma once

#include "superstep/run/train/train.h"

namespace superstep::cli {

// Prints the time, the plan's memory and, where the host counts it, the energy that the run would take.
// Nothing is written but --json. `options` without a folder and an observer.
void rehearse(const run::TrainSettings& settings, run::TrainOptions options);

}  // namespace superstep::cli
