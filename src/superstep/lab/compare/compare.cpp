#include "superstep/lab/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/random.h"
#include "superstep/base/statistics.h"
#include "superstep/base/text.h"

namespace superstep::lab {
namespace {

using nlohmann::json;

constexpr std::array usual_metrics{"step_time",   "throughput",         "throughput_with_data",
                                   "flops_rate",  "latency_p50",        "latency_p90",
                                   "latency_p99", "out_of_place_busbw", "in_place_busbw"};
constexpr std::size_t fewest_samples = 5;

double resampled_median(const std::vector<double>& samples, RandomStream& random, std::vector<double>& room) {
  room.clear();
  for (std::size_t i = 0; i < samples.size(); ++i) room.push_back(samples[random.below(samples.size())]);
  return quantile(room, 0.5);
}

// Efron's bootstrap, percentile interval: both sets drawn again with replacement, the ratio of their medians.
void add_interval(ComparedRow& row, const record::Quantity& before, const record::Quantity& after,
                  const CompareOptions& options) {
  if (before.samples.size() < fewest_samples || after.samples.size() < fewest_samples) return;
  RandomStream random(options.seed);
  std::vector<double> ratios, room;
  for (int i = 0; i < options.resamples; ++i) {
    const double old = resampled_median(before.samples, random, room);
    ratios.push_back(resampled_median(after.samples, random, room) / old);
  }
  // The middle 95 %.
  row.low = quantile(ratios, 0.025);
  row.high = quantile(ratios, 0.975);
}

// Without samples of both, intervals of the values themselves: as wide as the ratio can be.
void add_outer_interval(ComparedRow& row, const record::Quantity& before, const record::Quantity& after) {
  if (row.low || !before.low || !before.high || !after.low || !after.high || *before.low <= 0 ||
      *before.high <= 0)
    return;
  row.low = *after.low / *before.high;
  row.high = *after.high / *before.low;
}

Verdict verdict_of(const ComparedRow& row) {
  if (!row.low || !row.high) return Verdict::unknown;
  if (*row.low <= 1 && *row.high >= 1) return Verdict::same;
  return (*row.low > 1) == higher_is_better(row.metric, row.unit) ? Verdict::better : Verdict::worse;
}

std::vector<std::string> differences_of(const json& before, const json& after) {
  std::vector<std::string> differences;
  if (!before.is_object() || !after.is_object()) return differences;
  for (const auto& [name, value] : before.items()) {
    if (name == "record" || name == "checked" || !after.contains(name) || after[name] == value) continue;
    differences.push_back(fmt::format("{} {} -> {}", name, value.dump(), after[name].dump()));
  }
  return differences;
}

bool is_wanted(const std::string& metric, const CompareOptions& options) {
  if (options.metrics.empty()) return std::ranges::find(usual_metrics, metric) != usual_metrics.end();
  return std::ranges::find(options.metrics, metric) != options.metrics.end();
}

void compare_results(const record::Result& before, const record::Result& after, const CompareOptions& options,
                     Comparison& comparison) {
  const std::vector<std::string> differences = differences_of(before.config, after.config);
  for (const record::Quantity& old : before.quantities) {
    const record::Quantity* now = after.find(old.name);
    if (!now || !is_wanted(old.name, options) || old.value == 0) continue;
    ComparedRow row{
        .result = before.id, .metric = old.name, .unit = old.unit, .before = old.value, .after = now->value};
    row.ratio = now->value / old.value;
    row.differences = differences;
    add_interval(row, old, *now, options);
    add_outer_interval(row, old, *now);
    row.verdict = verdict_of(row);
    comparison.rows.push_back(std::move(row));
  }
}

std::string interval_text(const ComparedRow& row) {
  return row.low && row.high ? fmt::format("[{:.3f}, {:.3f}]", *row.low, *row.high) : "one value each";
}

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::same: return "within the noise";
    case Verdict::better: return "better";
    case Verdict::worse: return "worse";
    case Verdict::unknown: return "noise unknown";
  }
  return "";
}

bool higher_is_better(const std::string& metric, const std::string& unit) {
  if (unit == "s" || unit == "J" || unit == "W" || unit == "px") return false;
  for (const char* low : {"loss", "error", "mae", "mse", "wrong", "memory", "queueing"})
    if (metric.find(low) != std::string::npos && metric.find("utilization") == std::string::npos)
      return false;
  return true;
}

Comparison compare(const std::vector<record::Result>& before, const std::vector<record::Result>& after,
                   const CompareOptions& options) {
  Comparison comparison;
  const bool single = before.size() == 1 && after.size() == 1;
  const auto partner = [&](const record::Result& result,
                           const std::vector<record::Result>& others) -> const record::Result* {
    if (single) return &others.front();
    const auto found = std::ranges::find(others, result.id, &record::Result::id);
    return found == others.end() ? nullptr : &*found;
  };
  for (const record::Result& result : before)
    if (const record::Result* other = partner(result, after))
      compare_results(result, *other, options, comparison);
    else
      comparison.only_before.push_back(result.id);
  for (const record::Result& result : after)
    if (!partner(result, before)) comparison.only_after.push_back(result.id);
  return comparison;
}

std::string comparison_table(const Comparison& comparison) {
  TextTable table(
      {"result", "metric", "before", "after", "after/before", "95 %", "", "settings that differ"});
  for (const ComparedRow& row : comparison.rows)
    table.add_row({row.result, row.metric, format_si(row.before, row.unit), format_si(row.after, row.unit),
                   fmt::format("{:.3f}", row.ratio), interval_text(row), name_of(row.verdict),
                   join(row.differences, ", ")});
  std::string text =
      table.empty() ? "nothing to compare: no metric of the same result is in both\n" : table.to_string();
  if (!comparison.only_before.empty()) text += "only before: " + join(comparison.only_before, ", ") + "\n";
  if (!comparison.only_after.empty()) text += "only after: " + join(comparison.only_after, ", ") + "\n";
  return text;
}

}  // namespace superstep::lab
