// Linear support vector machines, one class against the others (LIBLINEAR).
#pragma once

#include <Eigen/Dense>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/baseline/trees.h"

namespace superstep::baseline {

struct LinearSvm {
  Eigen::MatrixXf weights;  // [classes, features]
  Eigen::VectorXf bias;     // [classes]; minus infinity for a class that was not seen
  // Scores [rows, classes]: the largest is the class.
  Eigen::MatrixXf scores(const TreeFeatures& x) const;
};

// Least |w|^2 / 2 + cost * sum of squared hinge losses, for each class, in the primal form by a trust-region
// Newton method: the same bits on any number of threads. Throws Error (invalid_argument) when rows and
// labels differ in number, a label is outside [0, classes) or there is only one class.
LinearSvm fit_linear_svm(const TreeFeatures& x, const std::vector<int>& labels, int classes, double cost,
                         ThreadPool& pool);

}  // namespace superstep::baseline
