// Smooth functions brought to their minimum by L-BFGS: libLBFGS, with its settings and failures in one place.
#pragma once

#include <span>
#include <vector>

#include "superstep/base/bounds.h"
#include "superstep/base/function_ref.h"

namespace superstep::design {

// The value at `at`; writes its slope, of the same length.
using SmoothFunction = FunctionRef<double(std::span<const double> at, std::span<double> slope)>;

struct Minimum {
  std::vector<double> at;
  double value = 0;
  int evaluations = 0;
};

// The lowest point that L-BFGS (J. Nocedal, Math. Comp. 35, 773 (1980); line search by More and Thuente)
// comes by from `start`, each number kept within its bounds by a sine of a free one. Where the line search
// fails, as it does when rounding hides the descent, that is the lowest point so far. Points at which the
// function is not finite are avoided. Throws Error (diverged) when it is finite nowhere, Error (interrupted)
// when the user asked to stop.
Minimum minimise(SmoothFunction function, std::span<const Bounds> bounds, std::span<const double> start,
                 int most_iterations = 200);

}  // namespace superstep::design
