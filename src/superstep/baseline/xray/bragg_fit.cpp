#include <ceres/tiny_solver.h>
#include <ceres/tiny_solver_autodiff_function.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/baseline/xray/bragg_position.h"

namespace superstep::baseline {
namespace {

// Order of the parameters of a fit; `angle` only where the axes may turn.
enum Parameter { amplitude, column, row, sigma1, sigma2, eta, background, angle };
constexpr int aligned_parameters = 7, rotated_parameters = 8;

constexpr double start_sigma = 1.3, start_eta = 0.5;  // px; share
constexpr int most_iterations = 100;
constexpr double farthest = 1.0;  // px outside the patch that a fitted centre may lie

// Residuals (model - counts) / sqrt(max(1, counts)) of all pixels.
template <bool rotates>
class Residuals {
 public:
  Residuals(std::span<const float> patch, int size) : patch_(patch), size_(size) {
    for (const float counts : patch) inverse_error_.push_back(1 / std::sqrt(std::max(1.0, double{counts})));
  }
  int NumResiduals() const { return size_ * size_; }

  template <class T>
  bool operator()(const T* p, T* residuals) const {
    using std::cos;
    using std::exp;
    using std::sin;
    T u_x = 1.0 / p[sigma1], u_y(0), v_x(0), v_y = 1.0 / p[sigma2];
    if constexpr (rotates) {
      const T c = cos(p[angle]), s = sin(p[angle]);
      u_y = s * u_x;
      u_x *= c;
      v_x = -s * v_y;
      v_y *= c;
    }
    const T gauss = p[amplitude] * (1.0 - p[eta]), lorentz = p[amplitude] * p[eta];
    std::size_t i = 0;
    for (int y = 0; y < size_; ++y) {
      for (int x = 0; x < size_; ++x, ++i) {
        const T dx = double(x) - p[column], dy = double(y) - p[row];
        const T u = u_x * dx + u_y * dy, v = v_x * dx + v_y * dy;
        const T q = u * u + v * v;
        const T model =
            lorentz / (1.0 + q * (0.5 / std::numbers::ln2)) + gauss * exp(q * -0.5) + p[background];
        residuals[i] = (model - double{patch_[i]}) * inverse_error_[i];
      }
    }
    return true;
  }

 private:
  std::span<const float> patch_;
  int size_;
  std::vector<double> inverse_error_;
};

template <int parameters>
Eigen::Matrix<double, parameters, 1> start(std::span<const float> patch, int size) {
  const auto [low, high] = std::ranges::minmax(patch);
  const PeakPosition brightest = brightest_pixel(patch, size);
  Eigen::Matrix<double, parameters, 1> x = Eigen::Matrix<double, parameters, 1>::Zero();
  x[amplitude] = std::max(high - low, 1.0f);
  x[column] = brightest.column;
  x[row] = brightest.row;
  x[sigma1] = x[sigma2] = start_sigma;
  x[eta] = start_eta;
  x[background] = low;
  return x;
}

bool is_plausible(double position, int size) {
  return position >= -farthest && position <= size - 1 + farthest;  // false for NaN
}

bool is_flat(std::span<const float> patch) {
  const auto [low, high] = std::ranges::minmax(patch);
  return low == high;
}

template <int parameters>
PeakFit fit(std::span<const float> patch, int size) {
  constexpr bool rotates = parameters == rotated_parameters;
  using Function = ceres::TinySolverAutoDiffFunction<Residuals<rotates>, Eigen::Dynamic, parameters>;
  if (is_flat(patch)) return {.position = centroid(patch, size), .converged = false};
  const Residuals<rotates> residuals(patch, size);
  const Function function(residuals);
  ceres::TinySolver<Function> solver;
  solver.options.max_num_iterations = most_iterations;
  auto x = start<parameters>(patch, size);
  const auto& summary = solver.Solve(function, &x);
  PeakFit result{{x[column], x[row]}, x[amplitude], std::abs(x[sigma1]), std::abs(x[sigma2]), 0, x[eta],
                 x[background]};
  if constexpr (rotates) result.angle = x[angle];
  result.iterations = summary.iterations;
  result.converged = summary.status != ceres::TinySolver<Function>::HIT_MAX_ITERATIONS &&
                     is_plausible(x[column], size) && is_plausible(x[row], size);
  if (!result.converged) result.position = centroid(patch, size);
  return result;
}

}  // namespace

PeakFit fit_axis_aligned(std::span<const float> patch, int size) {
  return fit<aligned_parameters>(patch, size);
}
PeakFit fit_rotated(std::span<const float> patch, int size) { return fit<rotated_parameters>(patch, size); }

}  // namespace superstep::baseline
