// Whether what was read of a file can be run: every number in its range.
#pragma once

#include "superstep/bsp/compile/executable_data.h"

namespace poplar::core {

// Throws graph_object_load_error, naming what cannot be. Vertices have their classes.
void check_executable(const superstep::bsp::ExecutableData& data);

}  // namespace poplar::core
