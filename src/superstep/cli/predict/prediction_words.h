// Parts of what `predict` prints: kernels, the constants behind a prediction, and a run's growth over many
// units.
#pragma once

#include <string>
#include <vector>

#include "superstep/machine/machine.h"
#include "superstep/machine/predict.h"
#include "superstep/machine/scaling.h"

namespace superstep::cli {

// Every number that the prediction rests on, of the machine and of the stack that drives it: value, kind,
// range, source.
std::string provenance_text(const machine::Machine& machine);

// Every kernel of a step, with the plan found for it.
std::string operators_text(const machine::Prediction& prediction);

std::string scaling_text(const std::vector<machine::ScalingPoint>& points);

}  // namespace superstep::cli
