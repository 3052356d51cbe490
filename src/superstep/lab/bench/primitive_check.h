// Is what a timed primitive computed right? Elements of its results, drawn at random, are computed again in
// double by loops of their own, which share nothing with the engine.
#pragma once

#include <cstdint>
#include <string>

#include "superstep/lab/bench/primitive_run.h"

namespace superstep::lab {

struct CheckReport {
  double worst = 0;   // the largest error, in units of what is tolerated: at most 1 is right
  std::string where;  // "dx[12, 4]"
  std::int64_t checked = 0;
};

// Calls the primitive. The error of an element is held against the sum of the magnitudes of its terms: 2e-5
// of it in f32, 1e-2 in bf16 and f16 (inputs are exact there, weights and results are rounded), 0 in int8.
// The gradients of an LSTM are held against central differences of a forward pass in double, along random
// directions. Throws Error (internal) when something is wrong, naming the element.
CheckReport check_primitive(PrimitiveRun& run);

}  // namespace superstep::lab
