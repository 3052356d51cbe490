// The target that computes nothing.
#pragma once

#include "superstep/target/target.h"

namespace superstep::target {

// Computes nothing: checks, clears the outputs, keeps state. What a run costs here is the host's overhead.
const Target& null_target();

}  // namespace superstep::target
