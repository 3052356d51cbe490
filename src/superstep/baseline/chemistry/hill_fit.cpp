#include "superstep/baseline/chemistry/hill_fit.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/baseline/least_squares.h"

namespace superstep::baseline {
namespace {

// Residuals of all points; parameters, each free of its bounds: log10 of the slope, log10 EC50, Einf.
struct HillResiduals {
  std::span<const double> x, y;
  Bounds slope, ec50, floor;

  int NumResiduals() const { return static_cast<int>(x.size()); }

  template <class T>
  bool operator()(const T* p, T* residuals) const {
    using std::pow;
    const T steepness = pow(T(10.0), slope.value(p[0])), middle = ec50.value(p[1]),
            lowest = floor.value(p[2]);
    for (std::size_t i = 0; i < x.size(); ++i)
      residuals[i] = lowest + (1.0 - lowest) / (1.0 + pow(T(10.0), steepness * (x[i] - middle))) - y[i];
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
  const HillResiduals residuals{x, y, {-1, 1}, {first - 4, last + 4}, {0, 1}};
  using Function = ceres::TinySolverAutoDiffFunction<HillResiduals, Eigen::Dynamic, 3>;
  Eigen::Vector3d p(residuals.slope.parameter(0), residuals.ec50.parameter(half_way(x, y, lowest)),
                    residuals.floor.parameter(lowest));
  minimise_squares(Function(residuals), p, {.most_iterations = 200}, "a Hill curve");
  return {std::pow(10.0, residuals.slope.value(p[0])), residuals.ec50.value(p[1]),
          residuals.floor.value(p[2])};
}

}  // namespace superstep::baseline
