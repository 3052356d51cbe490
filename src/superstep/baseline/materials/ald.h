// Settings of atomic layer deposition found by direct optimisation on the simulator.
#pragma once

#include <span>

#include "superstep/baseline/baseline.h"
#include "superstep/physics/materials/ald.h"

namespace superstep::baseline {

struct AldFit {
  double purge_a_s = 0, purge_b_s = 0, mass_a = 0, mass_b = 0;
  double deviation =
      0;  // largest |fitted - target|, relative to the target; of a trace, to its largest value
  int simulations = 0;
};

// Which of the simulator's outputs is fitted. Growth is constant from about the third cycle on and does not
// fix all four unknowns; the trace of mass within a cycle does.
enum class AldTarget { growth, trace };

// The best of `starts` runs of Levenberg and Marquardt's method (Ceres' small solver) from points spread over
// the bounds 0.02 to 1 s and 0 to 2. `target` is the growth of that many cycles, or the mass at that many
// evenly spaced times of the last of `cycles` cycles.
AldFit fit_ald(const data::AldProcess& process, AldTarget kind, std::span<const double> target, int cycles,
               double step_s, int starts);

Entry ald_optimizer();

}  // namespace superstep::baseline
