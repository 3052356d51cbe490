// A Gaussian process for curves as a function of settings.
//
// cov(f(x, e), f(x', e')) = variance * matern(x, x') * B(e, e'), measured with independent noise; settings x
// in [0, 1]^d, curves of E points, less their mean over the trials and divided by one scale. Over N trials
// that is K (x) B + noise I, which the eigenvectors of K and of B make diagonal: a likelihood takes O(N^3 +
// E^3) operations and not O(N^3 E^3) (O. Stegle et al., NIPS 24, 630 (2011)).
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <span>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/design/curve_kernel.h"

namespace superstep::design {

// Of standardised curves: `variance` and `noise` are variances in units of the scale's square.
struct Hyperparameters {
  double variance = 1;
  std::vector<double> lengths;  // of the settings in [0, 1]
  CurveKernel curve;
  double noise = 1e-3;
};

// Logarithms of all, in this order: variance, lengths, curve length, decay, delta, noise.
std::vector<double> packed(const Hyperparameters& parameters);
Hyperparameters unpacked(std::span<const double> logarithms);

struct CurveData {
  Eigen::MatrixXd settings;  // [N, d], in [0, 1]
  Eigen::MatrixXd curves;    // [N, E], standardised
  Eigen::VectorXd mean;      // [E] of what was measured
  double scale = 1;          // measured = mean + scale * standardised
};

// Standardises measured curves [N, E]. One scale for all points, so that noise stays the same at each.
CurveData standardised(const Eigen::MatrixXd& settings, const Eigen::MatrixXd& measured);

// log p(curves | settings, parameters). Where `slope` is not empty it receives the derivatives by the packed
// logarithms.
double log_marginal(const CurveData& data, const Hyperparameters& parameters, std::span<double> slope = {});

struct Fit {
  Hyperparameters parameters;
  double log_marginal = 0;
  int evaluations = 0;
};

// The parameters of the largest marginal likelihood, by L-BFGS from `starts` points, the first of them a
// usual one, the others drawn within the bounds; the same on any number of threads. Throws Error (diverged)
// and Error (interrupted) as minimise() does.
Fit fit_parameters(const CurveData& data, std::uint64_t seed, int starts, ThreadPool& pool);

// What is known after the trials. Along the eigenvectors of B the points of a curve are independent of each
// other: each eigenvector (a mode) has a Gaussian process of its own with kernel variance * eigenvalue *
// matern.
class CurvePosterior {
 public:
  // Modes that differ only by rounding have one eigenvalue and one factor: those that a smooth B does not
  // reach.
  struct Modes {
    double amplitude;                    // variance * eigenvalue
    Eigen::MatrixXd basis;               // [E, count], orthonormal
    Eigen::LLT<Eigen::MatrixXd> factor;  // of amplitude * matern + noise I, [N, N]
    Eigen::MatrixXd weights;             // its inverse times the curves along the basis, [N, count]
  };

  // Throws Error (diverged) where a covariance is not positive definite.
  CurvePosterior(CurveData data, Hyperparameters parameters);

  const CurveData& data() const { return data_; }
  const Hyperparameters& parameters() const { return parameters_; }
  const Eigen::VectorXd& lengths() const { return lengths_; }
  const std::vector<Modes>& modes() const { return modes_; }

  // Of the curve without noise at settings in [0, 1], in the units that were measured.
  struct Prediction {
    std::vector<double> mean, deviation;
  };
  Prediction predict(const Eigen::VectorXd& settings) const;

 private:
  CurveData data_;
  Hyperparameters parameters_;
  Eigen::VectorXd lengths_;
  std::vector<Modes> modes_;
};

// How many independent shapes the curves show beyond noise: singular values of the standardised curves above
// sqrt(noise) (sqrt(N) + sqrt(E)), the largest that noise alone gives (V. Marchenko and L. Pastur, 1967).
int effective_rank(const CurveData& data, double noise);

}  // namespace superstep::design
