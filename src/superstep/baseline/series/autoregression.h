// One-step forecasts of returns over a sliding window: AR(1) by least squares with Gaussian noise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

struct Forecast {
  double mean = 0, deviation = 1;
  double log_density(double value) const;  // of the Gaussian, nats
};
// From pairs (last, next): next = a + b last + noise. At least three pairs.
Forecast forecast_ar1(std::span<const double> last, std::span<const double> next, double now);
// The same without memory: the mean and deviation of `next`.
Forecast forecast_constant(std::span<const double> next);

struct ReturnRows {
  std::vector<std::int64_t> series;  // rows of a series stand together, in time
  std::vector<double> last, next;
  std::vector<double> expected, deviation;  // by the true model; empty where the file has none
};
// A table with the columns lag_1 and y (series, expected and deviation if there), or an HDF5 file with x and
// y.
ReturnRows read_returns(const std::filesystem::path& path);

Entry mcmc_baseline();

}  // namespace superstep::baseline
