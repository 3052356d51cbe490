#include "superstep/cli/shared/metrics.h"

#include <fmt/format.h>

#include "superstep/base/text.h"

namespace superstep::cli {
namespace {

std::string format(const Metric& metric) {
  if (metric.unit.empty()) return fmt::format("{:.5g}", metric.value);
  if (metric.unit == "px") return fmt::format("{:.4f} px", metric.value);
  return format_si(metric.value, metric.unit);
}

}  // namespace

std::string metrics_table(const std::vector<Metric>& metrics) {
  TextTable table({"metric", "value"});
  for (const Metric& metric : metrics) table.add_row({metric.name, format(metric)});
  return table.to_string();
}

}  // namespace superstep::cli
