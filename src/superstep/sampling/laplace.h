// The Laplace approximation: a normal distribution around a mode of the density, with the curvature that the
// density has there (D. MacKay, Neural Computation 4, 448 (1992)).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "superstep/sampling/log_density.h"

namespace superstep::sampling {

struct Mode {
  std::vector<double> position;
  double log_density = 0;
  double slope = 0;  // norm of the gradient there
  int evaluations = 0;
};

// Uphill from `start` by L-BFGS (J. Nocedal, Math. Comp. 35, 773 (1980)) with steps halved until they gain,
// until nothing is gained or `most_evaluations` are made. Throws Error (diverged) where the start has no
// density.
Mode find_mode(LogDensity& density, std::span<const double> start, int most_evaluations);

class LaplaceApproximation {
 public:
  // A Hessian is a dense matrix: so many dimensions take 800 MB.
  static constexpr std::size_t most_dimensions = 10000;

  // The curvature by central differences of the gradient, two evaluations a dimension. Where it is not
  // positive everywhere, as rounding or a saddle have it, `ridge` is added to its diagonal: ten times more
  // each time until it is. `progress` is told how many columns are done. Throws Error (unsupported) beyond
  // most_dimensions.
  LaplaceApproximation(LogDensity& density, Mode mode,
                       const std::function<void(std::size_t columns)>& progress = {});
  ~LaplaceApproximation();

  const Mode& mode() const { return mode_; }
  double ridge() const { return ridge_; }
  int evaluations() const { return evaluations_; }
  // log of the integral of the density, as far as it is this normal distribution: the evidence, where the
  // density is normalised.
  double log_evidence() const;
  // Draw number `index`: independent of the others.
  std::vector<double> draw(std::uint64_t seed, std::uint64_t index) const;

 private:
  struct Factor;
  Mode mode_;
  double ridge_ = 0;
  int evaluations_ = 0;
  std::unique_ptr<Factor> factor_;  // Cholesky's, of the curvature
};

}  // namespace superstep::sampling
