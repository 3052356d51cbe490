// The target that evaluates by definition.
#pragma once

#include "superstep/target/target.h"

namespace superstep::target {

// The oracle: every operator by its definition, in the order of the graph, whole batches at a time.
const Target& reference_target();

}  // namespace superstep::target
