// The target for this machine's processor.
#pragma once

#include "superstep/target/target.h"

namespace superstep::target::cpu {

// The target with passes left out (target/cpu/passes.h), by name. Throws Error (invalid_argument) on a
// name of none, and on a pass that is required, with the reason.
std::unique_ptr<const Target> cpu_target_without(std::vector<std::string> passes);

}  // namespace superstep::target::cpu
