// Means and quantiles of measured values.
#pragma once

#include <span>

namespace superstep {

double mean(std::span<const double> values);  // NaN of none

// The value that the share `share` in [0, 1] of the values lies below, interpolated linearly between
// neighbours in order (numpy's default); 0.5 is the median. NaN of none.
double quantile(std::span<const double> values, double share);
inline double median(std::span<const double> values) { return quantile(values, 0.5); }

// The nearest-rank percentile: sample number ceil(share x n) in order, of values in ascending order; what
// latencies are reported by. NaN of none.
double nearest_rank(std::span<const double> sorted, double share);

}  // namespace superstep
