// Parts of what `predict` prints: the constants behind a prediction, and a run's growth over many units.
#pragma once

#include <string>
#include <vector>

#include "superstep/machine/machine.h"
#include "superstep/machine/scaling.h"

namespace superstep::cli {

// Every number that the prediction rests on, of the machine and of the stack that drives it: value, kind,
// range, source.
std::string provenance_text(const machine::Machine& machine);

std::string scaling_text(const std::vector<machine::ScalingPoint>& points);

}  // namespace superstep::cli
