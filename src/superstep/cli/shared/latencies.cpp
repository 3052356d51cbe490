#include "superstep/cli/shared/latencies.h"

#include <utility>

#include "superstep/base/statistics.h"
#include "superstep/base/text.h"

namespace superstep::cli {
namespace {

bool has_percentile(std::span<const double> ascending, double share) {
  return static_cast<double>(ascending.size()) * (1 - share) >= 10;
}

}  // namespace

std::string percentile(std::span<const double> ascending, double share) {
  return has_percentile(ascending, share) ? format_seconds(nearest_rank(ascending, share)) : "-";
}

void add_latencies(std::span<const double> ascending, std::vector<Metric>& metrics) {
  const auto add = [&](const char* name, double value) {
    metrics.push_back({.name = name, .value = value, .unit = "s"});
  };
  for (const auto& [name, share] : {std::pair("latency_p50", 0.5), std::pair("latency_p90", 0.9),
                                    std::pair("latency_p99", 0.99), std::pair("latency_p999", 0.999)})
    if (has_percentile(ascending, share)) add(name, nearest_rank(ascending, share));
  if (!ascending.empty()) add("latency_max", ascending.back());
}

}  // namespace superstep::cli
