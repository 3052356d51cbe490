// Means and quantiles of measured values.
#pragma once

#include <span>

namespace superstep {

double mean(std::span<const double> values);  // NaN of none

// The value that the share `share` in [0, 1] of the values lies below, interpolated linearly between
// neighbours in order (numpy's default); 0.5 is the median. NaN of none.
double quantile(std::span<const double> values, double share);

}  // namespace superstep
