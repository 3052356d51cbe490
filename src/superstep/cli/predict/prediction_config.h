// A prediction as the configuration of its result.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "superstep/cli/predict/arguments.h"
#include "superstep/machine/configuration/resolve.h"
#include "superstep/machine/machine.h"

namespace superstep::cli {

// Where it was predicted and how, what bounds it, and every number that it rests on.
nlohmann::json config_of(const PredictArguments& arguments, const machine::Machine& machine,
                         const machine::Answer& found);

}  // namespace superstep::cli
