// Returns of an asset as financial econometrics models them: AR(1) with GARCH(1,1) noise (T. Bollerslev, J.
// Econometrics 31, 307 (1986)), workload mcmc.
//
//   r_t = mean + ar (r_{t-1} - mean) + e_t,  e_t = s_t z_t,  s_t^2 = omega + alpha e_{t-1}^2 + beta s_{t-1}^2
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/physics/generator.h"

namespace superstep::data {

struct ReturnModel {
  double mean = 5e-4, ar = 0.2, omega = 2e-6, alpha = 0.08, beta = 0.9;
  double noise_variance() const { return omega / (1 - alpha - beta); }
  double variance() const { return noise_variance() / (1 - ar * ar); }
  // Of the noise: 3 (1 - (alpha+beta)^2) / (1 - (alpha+beta)^2 - 2 alpha^2).
  double noise_kurtosis() const;
};

struct ReturnStep {
  double value, expected, deviation;  // what came; mean and standard deviation given all before
};
// `count` steps of series `series`, after a start of 500 steps that are left out.
std::vector<ReturnStep> return_series(const ReturnModel& model, std::uint64_t seed, std::uint64_t series,
                                      int count);

// Sample i is row i mod rows of series i / rows: 22 lagged returns, the last first, and the next one. .csv
// and .tsv hold the same columns as text.
inline constexpr int lag_count = 22;
GeneratorEntry mcmc_generator();

}  // namespace superstep::data
