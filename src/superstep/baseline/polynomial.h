// A function of several variables by ridge regression: on the variables alone, and with their squares and
// products (workload mlp).
#pragma once

#include <Eigen/Dense>
#include <vector>

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

// Rows of variables, then of all their products of two.
Eigen::MatrixXd with_products_of_two(const Eigen::MatrixXd& x);

Entry polynomial_baseline();  // "mlp"

}  // namespace superstep::baseline
