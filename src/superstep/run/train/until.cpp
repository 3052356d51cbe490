#include "superstep/run/train/until.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/run/quality.h"

namespace superstep::run {

Until parse_until(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not METRIC=VALUE", text), "--until",
                "for example --until error_px_mean=0.04");
  const std::string_view number = text.substr(equals + 1);
  const auto value = finite_number(number);
  if (!value)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a number", number),
                fmt::format("--until {}", text), "write it with a point, as in error_px_mean=0.04");
  return {std::string(text.substr(0, equals)), *value};
}

void check_until(const Until& until, const workload::Workload& workload) {
  if (std::ranges::find(workload.metrics, until.metric, &workload::MetricSpec::name) !=
      workload.metrics.end())
    return;
  std::vector<std::string> names;
  for (const workload::MetricSpec& metric : workload.metrics) names.push_back(metric.name);
  if (names.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' measures no quality", workload.name),
                "--until " + until.metric, "train it for --steps or --epochs");
  const auto nearest = nearest_name(until.metric, names);
  throw Error(
      ErrorCode::invalid_argument, fmt::format("'{}' has no such metric", workload.name),
      "--until " + until.metric,
      fmt::format("{}its metrics are {}",
                  nearest ? fmt::format("did you mean '{}'? ", *nearest) : std::string(), join(names, ", ")));
}

std::string to_string(const Until& until, const workload::Workload& workload) {
  return fmt::format("{} {} {}", until.metric,
                     higher_is_better(workload, until.metric) ? ">=" : "<=", until.value);
}

bool reaches(const Until& until, const workload::Workload& workload, const std::vector<Metric>& quality) {
  const auto watched = std::ranges::find(quality, until.metric, &Metric::name);
  return watched != quality.end() &&
         as_good(watched->value, until.value, higher_is_better(workload, until.metric));
}

}  // namespace superstep::run
