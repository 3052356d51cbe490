#include "superstep/design/curve_kernel.h"

#include <cmath>

namespace superstep::design {
namespace {

// u_e and d u_e / d log(decay).
struct Coordinate {
  Eigen::VectorXd u, slope;
};

Coordinate coordinate(double decay, Eigen::Index points) {
  Coordinate c{Eigen::VectorXd::Zero(points), Eigen::VectorXd::Zero(points)};
  if (points < 2) return c;
  const double last = static_cast<double>(points - 1) / decay;
  const double whole = std::expm1(-last), whole_slope = last * std::exp(-last);
  for (Eigen::Index e = 0; e < points; ++e) {
    const double way = static_cast<double>(e) / decay;
    const double part = std::expm1(-way), part_slope = way * std::exp(-way);
    c.u[e] = part / whole;
    c.slope[e] = (part_slope * whole - part * whole_slope) / (whole * whole);
  }
  return c;
}

}  // namespace

Eigen::MatrixXd CurveKernel::smooth(Eigen::Index points) const {
  const Eigen::VectorXd u = coordinate(decay, points).u;
  Eigen::MatrixXd b(points, points);
  for (Eigen::Index i = 0; i < points; ++i)
    for (Eigen::Index j = 0; j < points; ++j) {
      const double apart = (u[i] - u[j]) / length;
      b(i, j) = std::exp(-0.5 * apart * apart);
    }
  return b;
}

Eigen::MatrixXd CurveKernel::by_log_length(Eigen::Index points) const {
  const Eigen::VectorXd u = coordinate(decay, points).u;
  Eigen::MatrixXd derivative = smooth(points);
  for (Eigen::Index i = 0; i < points; ++i)
    for (Eigen::Index j = 0; j < points; ++j) {
      const double apart = (u[i] - u[j]) / length;
      derivative(i, j) *= apart * apart;
    }
  return derivative;
}

Eigen::MatrixXd CurveKernel::by_log_decay(Eigen::Index points) const {
  const Coordinate c = coordinate(decay, points);
  Eigen::MatrixXd derivative = smooth(points);
  for (Eigen::Index i = 0; i < points; ++i)
    for (Eigen::Index j = 0; j < points; ++j)
      derivative(i, j) *= -(c.u[i] - c.u[j]) * (c.slope[i] - c.slope[j]) / (length * length);
  return derivative;
}

}  // namespace superstep::design
