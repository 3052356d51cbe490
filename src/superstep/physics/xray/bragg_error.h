// How good positions of Bragg peaks are.
#pragma once

#include <span>
#include <vector>

#include "superstep/base/metric.h"

namespace superstep::data {

// Of the Euclidean distances to the true centres in px: error_px_mean, _p50, _p75, _p95 and _p995.
std::vector<Metric> position_error_metrics(std::span<const double> errors);

}  // namespace superstep::data
