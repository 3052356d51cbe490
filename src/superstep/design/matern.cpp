#include "superstep/design/matern.h"

#include <cmath>

namespace superstep::design {
namespace {

double scaled_distance(const Eigen::MatrixXd& a, Eigen::Index i, const Eigen::MatrixXd& b, Eigen::Index j,
                       const Eigen::VectorXd& lengths) {
  double squares = 0;
  for (Eigen::Index d = 0; d < lengths.size(); ++d) {
    const double apart = (a(i, d) - b(j, d)) / lengths[d];
    squares += apart * apart;
  }
  return std::sqrt(5 * squares);
}

// -2 dk / d(r^2): what all derivatives have in common.
double slope(double s) { return 5.0 / 3 * (1 + s) * std::exp(-s); }

}  // namespace

Eigen::MatrixXd matern(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b, const Eigen::VectorXd& lengths) {
  Eigen::MatrixXd k(a.rows(), b.rows());
  for (Eigen::Index j = 0; j < b.rows(); ++j)
    for (Eigen::Index i = 0; i < a.rows(); ++i) {
      const double s = scaled_distance(a, i, b, j, lengths);
      k(i, j) = (1 + s + s * s / 3) * std::exp(-s);
    }
  return k;
}

Eigen::MatrixXd matern_by_length(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                 const Eigen::VectorXd& lengths, Eigen::Index d) {
  Eigen::MatrixXd derivative(a.rows(), b.rows());
  for (Eigen::Index j = 0; j < b.rows(); ++j)
    for (Eigen::Index i = 0; i < a.rows(); ++i) {
      const double apart = (a(i, d) - b(j, d)) / lengths[d];
      derivative(i, j) = slope(scaled_distance(a, i, b, j, lengths)) * apart * apart;
    }
  return derivative;
}

Eigen::MatrixXd matern_by_point(const Eigen::VectorXd& a, const Eigen::MatrixXd& b,
                                const Eigen::VectorXd& lengths) {
  Eigen::MatrixXd derivative(b.rows(), a.size());
  const Eigen::MatrixXd point = a.transpose();
  for (Eigen::Index j = 0; j < b.rows(); ++j) {
    const double common = slope(scaled_distance(point, 0, b, j, lengths));
    for (Eigen::Index d = 0; d < a.size(); ++d)
      derivative(j, d) = -common * (a[d] - b(j, d)) / (lengths[d] * lengths[d]);
  }
  return derivative;
}

}  // namespace superstep::design
