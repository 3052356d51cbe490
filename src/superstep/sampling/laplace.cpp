#include "superstep/sampling/laplace.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/base/random.h"

namespace superstep::sampling {
namespace {

// Of minus the log density, symmetric.
Eigen::MatrixXd curvature(LogDensity& density, std::span<const double> at,
                          const std::function<void(std::size_t)>& progress) {
  // Gradients are right to 1e-6 of their size where they are computed in f32: the third root of that, about,
  // makes what rounding and what the third derivative spoil equal.
  constexpr double relative_step = 5e-3;
  const auto n = static_cast<Eigen::Index>(at.size());
  Eigen::MatrixXd hessian(n, n);
  std::vector<double> position(at.begin(), at.end()), ahead(at.size()), behind(at.size());
  for (Eigen::Index k = 0; k < n; ++k) {
    double& moved = position[static_cast<std::size_t>(k)];
    const double there = moved, step = relative_step * std::max(1.0, std::abs(there));
    moved = there + step;
    density.evaluate(position, ahead);
    moved = there - step;
    density.evaluate(position, behind);
    moved = there;
    for (Eigen::Index i = 0; i < n; ++i)
      hessian(i, k) = (behind[static_cast<std::size_t>(i)] - ahead[static_cast<std::size_t>(i)]) / (2 * step);
    if (progress) progress(static_cast<std::size_t>(k + 1));
  }
  const Eigen::MatrixXd symmetric = (hessian + hessian.transpose()) / 2;
  return symmetric;
}

}  // namespace

struct LaplaceApproximation::Factor {
  Eigen::LLT<Eigen::MatrixXd> cholesky;
};

LaplaceApproximation::LaplaceApproximation(LogDensity& density, Mode mode,
                                           const std::function<void(std::size_t)>& progress)
    : mode_(std::move(mode)), factor_(std::make_unique<Factor>()) {
  const std::size_t n = mode_.position.size();
  if (n > most_dimensions)
    throw Error(ErrorCode::unsupported,
                fmt::format("the curvature of {} dimensions is a matrix of their square: at most {}", n,
                            most_dimensions),
                "laplace", "use nuts");
  Eigen::MatrixXd hessian = curvature(density, mode_.position, progress);
  evaluations_ = mode_.evaluations + 2 * static_cast<int>(n);
  factor_->cholesky.compute(hessian);
  const double first = 1e-6 * std::max(1.0, hessian.diagonal().cwiseAbs().maxCoeff());
  while (factor_->cholesky.info() != Eigen::Success && std::isfinite(ridge_)) {
    const double next = ridge_ == 0 ? first : 10 * ridge_;
    hessian.diagonal().array() += next - ridge_;
    ridge_ = next;
    factor_->cholesky.compute(hessian);
  }
}

LaplaceApproximation::~LaplaceApproximation() = default;

double LaplaceApproximation::log_evidence() const {
  double log_determinant = 0;
  const auto& lower = factor_->cholesky.matrixLLT();
  for (Eigen::Index k = 0; k < lower.rows(); ++k) log_determinant += 2 * std::log(lower(k, k));
  return mode_.log_density +
         (static_cast<double>(lower.rows()) * std::log(2 * std::numbers::pi) - log_determinant) / 2;
}

std::vector<double> LaplaceApproximation::draw(std::uint64_t seed, std::uint64_t index) const {
  RandomStream random(seed, index);
  Eigen::VectorXd normal(static_cast<Eigen::Index>(mode_.position.size()));
  for (double& z : normal) z = random.normal();
  factor_->cholesky.matrixU().solveInPlace(normal);
  std::vector<double> position = mode_.position;
  for (std::size_t k = 0; k < position.size(); ++k) position[k] += normal(static_cast<Eigen::Index>(k));
  return position;
}

}  // namespace superstep::sampling
