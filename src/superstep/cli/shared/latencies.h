// How long answers took, in words and as metrics: percentiles that have ten samples beyond them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "superstep/cli/shared/outcome.h"

namespace superstep::cli {

// `ascending`: seconds. "-" where too few are beyond it.
std::string percentile(std::span<const double> ascending, double share);
// latency_p50, p90, p99, p999 as far as there are enough, and latency_max.
void add_latencies(std::span<const double> ascending, std::vector<Metric>& metrics);

}  // namespace superstep::cli
