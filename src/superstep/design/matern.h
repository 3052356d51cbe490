// The Matern kernel of order 5/2 with a length for every setting, and its derivatives.
//
// k(a, b) = (1 + s + s^2 / 3) exp(-s), s = sqrt(5) r, r^2 = sum_d ((a_d - b_d) / length_d)^2 (C. E. Rasmussen
// and C. K. I. Williams, Gaussian Processes for Machine Learning, equation 4.17).
#pragma once

#include <Eigen/Dense>

namespace superstep::design {

// k of every row of `a` [n, d] with every row of `b` [m, d]: [n, m].
Eigen::MatrixXd matern(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b, const Eigen::VectorXd& lengths);

// d k(a_i, b_j) / d log(length_d) of all pairs: [n, m].
Eigen::MatrixXd matern_by_length(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                 const Eigen::VectorXd& lengths, Eigen::Index d);

// d k(a, b_j) / d a of one point `a` [d] with every row of `b` [m, d]: [m, d].
Eigen::MatrixXd matern_by_point(const Eigen::VectorXd& a, const Eigen::MatrixXd& b,
                                const Eigen::VectorXd& lengths);

}  // namespace superstep::design
