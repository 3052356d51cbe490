// Non-linear least squares by Levenberg and Marquardt's method: Ceres' header-only small solver, with its
// tolerances and its failures in one place. Nothing of Ceres is linked.
#pragma once

#include <ceres/tiny_solver.h>
#include <ceres/tiny_solver_autodiff_function.h>

#include <cmath>
#include <string>

#include "superstep/base/bounds.h"
#include "superstep/base/error.h"

namespace superstep::baseline {

struct LeastSquares {
  int most_iterations = 100;
  double smallest_change = 1e-12;  // of the sum of squares: a step that gains less is the last
};

// Moves `x` to a minimum of the sum of squares of a function as ceres/tiny_solver.h describes it, or as far
// as the iterations go. Throws Error (diverged), which says that the fit of `what` failed, when the sum is no
// number or has not fallen from a start that was no minimum.
template <class Function>
void minimise_squares(const Function& function, typename ceres::TinySolver<Function>::Parameters& x,
                      const LeastSquares& settings, const std::string& what) {
  using Solver = ceres::TinySolver<Function>;
  Solver solver;
  solver.options.max_num_iterations = settings.most_iterations;
  solver.options.function_tolerance = settings.smallest_change;
  const auto& summary = solver.Solve(function, &x);
  const bool usable =
      std::isfinite(summary.final_cost) && x.allFinite() && summary.final_cost <= summary.initial_cost;
  if (!usable) throw Error(ErrorCode::diverged, "the fit of " + what + " failed");
}

}  // namespace superstep::baseline
