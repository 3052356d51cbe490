// The bulk-synchronous machine: device graphs, vertices, programs, an engine that executes them and counts
// cycles, profiles. docs/bsp.md explains it.
#pragma once

#include "superstep/bsp/engine.h"
#include "superstep/bsp/graph.h"
#include "superstep/bsp/profile.h"
#include "superstep/bsp/program.h"
#include "superstep/bsp/target.h"
#include "superstep/bsp/tensor.h"
#include "superstep/bsp/vertex.h"
