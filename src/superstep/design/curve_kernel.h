// The covariance between the points of a curve: a radial basis function over a coordinate in which the curve
// changes evenly, plus a part that every point has for itself.
//
// B(e, e') = exp(-(u_e - u_e')^2 / (2 length^2)) + delta [e = e'], with the relaxation coordinate
// u_e = (1 - exp(-e / decay)) / (1 - exp(-(E - 1) / decay)), e = 0 .. E - 1. Growth per cycle relaxes within
// some cycles and is constant from then on: with a short decay the first points lie apart and all others
// together, so that B has a low rank; with a long decay u is even in e, as for a curve that changes all
// along.
#pragma once

#include <Eigen/Dense>

namespace superstep::design {

struct CurveKernel {
  double length = 0.5, decay = 10, delta = 1e-4;

  Eigen::MatrixXd smooth(Eigen::Index points) const;  // without delta: [points, points]
  Eigen::MatrixXd by_log_length(Eigen::Index points) const;
  Eigen::MatrixXd by_log_decay(Eigen::Index points) const;
};

}  // namespace superstep::design
