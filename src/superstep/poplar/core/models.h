// The machines behind targets.
#pragma once

#include <poplar/Target.hpp>
#include <string>

#include "superstep/poplar/core/handles.h"

namespace poplar::core {

// "ipu1", "ipu2", "ipu21", and the names of bsp/compile/device.h; throws invalid_machine_model for another.
TargetData chip(const std::string& version, unsigned ipus, TargetType type);

// Throws invalid_machine_model where a number cannot be.
Target checked_target(TargetData data);

// One tile a chip, one worker, memory without end, and nothing but vertices takes time.
Target cpu_target(unsigned ipus);

}  // namespace poplar::core
