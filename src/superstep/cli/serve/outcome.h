// What `superstep serve` says at its end: accounts of models, doors and streams, and whether all went well.
#pragma once

#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/cli/serve/arguments.h"
#include "superstep/edge/serve.h"

namespace superstep::cli {

std::string tables_of(const edge::ServeSettings& settings, const edge::ServeReport& report);
std::vector<Metric> metrics_of(const edge::ServeReport& report);

// Throws Error where what was taken in has no answer, or answers are no numbers though nobody allowed that.
void require_all_well(const ServeArguments& a, const edge::ServeReport& report);

}  // namespace superstep::cli
