// What the next trials are worth: the expected log-likelihood of the target at settings x after trials at x2.
//
// C. Graziani and M. Ngom, "Targeted adaptive design", arXiv 2205.14208. With p and Q the posterior mean and
// covariance of the curve at x after the trials so far, C = K_x2 - K_x1 (K_11 + S_1)^-1 K_12 its covariance
// with the curves at x2, Q2 their covariance among themselves with the noise that they will have, and T = C
// Q2^-1 C^T what they take off Q,
//   L(x, x2) = -1/2 log det(Q - T) - 1/2 (f_T - p)^T (Q - T)^-1 (f_T - p) - 1/2 tr[T (Q - T)^-1].
// Q counts the noise of a measurement at x: the target is a curve as it would be measured. Without it a mode
// of the curves that never varies would have Q = 0, and a target off by a thousandth there would outweigh all
// others.
//
// At a given x no x2 raises L: it is the expectation of a logarithm, at most the logarithm of the expectation
// (Jensen), which is L without x2, and equal where the curves at x2 tell nothing of that at x. Learning what
// happens around x is left to the trial at x, which every iteration makes; those of x2 look elsewhere.
#pragma once

#include <Eigen/Dense>
#include <cstdint>

#include "superstep/base/thread_pool.h"
#include "superstep/design/gaussian_process.h"

namespace superstep::design {

class Acquisition {
 public:
  // `target` [E] in the units that were measured. Keeps a reference to the posterior.
  Acquisition(const CurvePosterior& posterior, const Eigen::VectorXd& target);

  struct Slope {
    Eigen::VectorXd by_point;  // [d]
    Eigen::MatrixXd by_batch;  // [m, d]
  };
  // L at `point` [d] with trials at the rows of `batch` [m, d] (m may be 0), all in [0, 1]; writes its exact
  // slope. Both in units of standardised curves, constants left out. Thread-safe.
  double operator()(const Eigen::VectorXd& point, const Eigen::MatrixXd& batch, Slope* slope = nullptr) const;

 private:
  const CurvePosterior& posterior_;
  std::vector<Eigen::VectorXd> targets_;  // along the basis of each group of modes
};

struct Proposal {
  Eigen::VectorXd point;  // [d]
  Eigen::MatrixXd batch;  // [m, d]
  double value = 0;       // L
  int evaluations = 0;
};

// The largest L over x and `batch` settings x2 together, by L-BFGS within [0, 1] from `starts` points: those
// of the largest L without further trials among the trials so far and a Latin hypercube, with x2 scattered
// around them. The same on any number of threads. Throws as minimise() does.
Proposal propose(const Acquisition& acquisition, const Eigen::MatrixXd& tried, int batch, std::uint64_t seed,
                 int starts, ThreadPool& pool);

}  // namespace superstep::design
