// Non-linear least squares by Levenberg and Marquardt's method: Ceres' header-only small solver, with its
// tolerances and its failures in one place. Nothing of Ceres is linked.
#pragma once

#include <ceres/tiny_solver.h>
#include <ceres/tiny_solver_autodiff_function.h>

#include <algorithm>
#include <cmath>
#include <string>

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

// A value between two bounds as a sine of a parameter without bounds, so that a minimum at a bound is one
// inside (F. James and M. Roos, Comput. Phys. Commun. 10, 343 (1975)).
struct Bounds {
  double low, high;

  template <class T>
  T value(const T& parameter) const {
    using std::sin;
    return low + (high - low) * (0.5 + 0.5 * sin(parameter));
  }
  // Of a value inside; one at or beyond a bound is first moved in, since at the bound itself the slope is 0.
  double parameter(double inside) const {
    const double share = std::clamp((inside - low) / (high - low), 0.01, 0.99);
    return std::asin(2 * share - 1);
  }
};

}  // namespace superstep::baseline
