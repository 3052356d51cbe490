// The bulk-synchronous machine: device graphs, vertices, programs, an engine that executes them and counts
// cycles, profiles. docs/bsp.md explains it.
#pragma once

#include "superstep/bsp/compile/device.h"
#include "superstep/bsp/engine/engine.h"
#include "superstep/bsp/graph/graph.h"
#include "superstep/bsp/graph/program.h"
#include "superstep/bsp/graph/tensor.h"
#include "superstep/bsp/graph/vertex.h"
#include "superstep/bsp/profile/profile.h"
