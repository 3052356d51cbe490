// Predictions of a processor: by the plan that would run there.
#pragma once

#include "superstep/cli/predict/arguments.h"
#include "superstep/machine/machine.h"

namespace superstep::cli {

// Of this computer or one like it; prints the answer and writes its result. Throws Error.
void predict_processor(const PredictArguments& arguments, const machine::Machine& machine);

}  // namespace superstep::cli
