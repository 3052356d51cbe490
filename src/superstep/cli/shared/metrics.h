// Metrics as a table for the terminal.
#pragma once

#include <string>
#include <vector>

#include "superstep/base/metric.h"

namespace superstep::cli {

std::string metrics_table(const std::vector<Metric>& metrics);

}  // namespace superstep::cli
