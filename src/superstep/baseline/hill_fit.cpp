#include "superstep/baseline/hill_fit.h"

#include <ceres/ceres.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"

namespace superstep::baseline {
namespace {

// One point; parameters: log10 of the slope, log10 EC50, Einf.
struct Point {
  double x, y;
  template <class T>
  bool operator()(const T* p, T* residual) const {
    using std::pow;
    const T slope = pow(T(10.0), p[0]);
    residual[0] = p[2] + (1.0 - p[2]) / (1.0 + pow(T(10.0), slope * (x - p[1]))) - y;
    return true;
  }
};

// The dose where the response has fallen half way to its lowest value.
double half_way(std::span<const double> x, std::span<const double> y, double lowest) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (y[i] < (1 + lowest) / 2) return x[i];
  return x.back() + 1;
}

}  // namespace

data::HillCurve fit_hill(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size() || x.size() < 4)
    throw Error(ErrorCode::invalid_argument, "a Hill curve is fitted to at least four points");
  const auto [first, last] = std::ranges::minmax(x);
  const double lowest = std::clamp(std::ranges::min(y), 0.01, 0.99);
  double p[3] = {0, half_way(x, y, lowest), lowest};
  ceres::Problem problem;
  for (std::size_t i = 0; i < x.size(); ++i)
    problem.AddResidualBlock(new ceres::AutoDiffCostFunction<Point, 1, 3>(new Point{x[i], y[i]}), nullptr, p);
  const double low[] = {-1, first - 4, 0}, high[] = {1, last + 4, 1};
  for (int k = 0; k < 3; ++k) {
    problem.SetParameterLowerBound(p, k, low[k]);
    problem.SetParameterUpperBound(p, k, high[k]);
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  if (!summary.IsSolutionUsable())
    throw Error(ErrorCode::diverged, "the fit of a Hill curve failed: " + summary.message);
  return {std::pow(10.0, p[0]), p[1], p[2]};
}

}  // namespace superstep::baseline
