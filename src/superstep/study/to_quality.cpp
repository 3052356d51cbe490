#include "superstep/study/to_quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/lab/validate/application_rows.h"
#include "superstep/record/member.h"
#include "superstep/study/known.h"

namespace superstep::study {
namespace {

Figure none(std::string why) { return {.value = {}, .words = std::move(why)}; }

nlohmann::json list_of(const Kept& kept, const char* name) {
  if (kept.results.empty()) return nlohmann::json::array();
  const nlohmann::json report = record::object_member(kept.results.front().details, "report");
  const auto found = report.find(name);
  return found != report.end() && found->is_array() ? *found : nlohmann::json::array();
}

bool is_of(const nlohmann::json& row, const Recipe& recipe) {
  return record::text_member(row, "precision", "") == recipe.precision &&
         record::integer_member(row, "batch", 0) == recipe.batch;
}

std::string joined(const std::set<std::int64_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

// The cells that one command answers.
struct Asked {
  std::set<std::int64_t> batches, units;
  std::vector<std::string> machines;
};

Asked asked_of(const Cells& cells, const std::string& workload) {
  Asked asked;
  for (const Cell& cell : cells.list) {
    if (cells.text(cell, "workload") != workload) continue;
    if (const std::int64_t batch = cells.count(cell, "micro_batch"); batch > 0) asked.batches.insert(batch);
    const std::string& machine = cells.text(cell, "machine");
    if (machine.empty() || machine == "cpu") continue;
    asked.units.insert(std::max<std::int64_t>(1, cells.count(cell, "units")));
    if (std::ranges::find(asked.machines, machine) == asked.machines.end()) asked.machines.push_back(machine);
  }
  return asked;
}

}  // namespace

bool is_of_quality(const std::string& metric) {
  return metric == "steps_to_quality" || metric == "time_to_quality";
}

std::vector<std::string> quality_command(const Cells& cells, const Recipe& recipe,
                                         const std::string& workload) {
  const Measure& measure = *recipe.measure;
  const Asked asked = asked_of(cells, workload);
  std::vector<std::string> command{"study",
                                   "quality",
                                   workload,
                                   "--until",
                                   measure.until,
                                   "--batch",
                                   joined(asked.batches),
                                   "--precision",
                                   recipe.precision,
                                   "--seeds",
                                   fmt::format("{}", measure.seeds)};
  if (!measure.rate_rule.empty()) command.insert(command.end(), {"--rate-rule", measure.rate_rule});
  if (!asked.machines.empty())
    command.insert(command.end(), {"--on", join(asked.machines, ","), "--units", joined(asked.units)});
  for (const std::string& option : measure.options) command.insert(command.end(), {"--set", option});
  return command;
}

Figure measured_to_quality(const Cells& cells, const Cell& cell, const Recipe& recipe, const Kept& kept) {
  const std::string &metric = cells.text(cell, "metric"), &machine = cells.text(cell, "machine");
  if (metric == "time_to_quality" && !machine.empty() && machine != "cpu")
    return none("a machine's time is predicted, by the steps that are measured here");
  const bool is_quality_itself = is_quality(metric);
  std::vector<double> values;
  int seeds = 0;
  for (const nlohmann::json& row : list_of(kept, "trainings")) {
    if (!is_of(row, recipe)) continue;
    ++seeds;
    const std::string ending = record::text_member(row, "ending", "");
    if (is_quality_itself ? ending == "diverged" || ending == "failed" : ending != "reached") continue;
    values.push_back(record::number_member(row,
                                           is_quality_itself             ? "quality"
                                           : metric == "time_to_quality" ? "seconds"
                                                                         : "steps",
                                           0));
  }
  if (seeds == 0) return none(fmt::format("batch {} was not trained", recipe.batch));
  // What some seeds alone come to says nothing of the others.
  if (static_cast<int>(values.size()) < seeds)
    return none(
        fmt::format("{} of {} seeds did not reach it", seeds - static_cast<int>(values.size()), seeds));
  const double scale =
      is_quality_itself ? recipe.measure->factor : lab::scale_of_unit(cells.text(cell, "unit"));
  const auto [low, high] = std::ranges::minmax(values);
  Figure figure{(is_quality_itself ? mean(values) : median(values)) * scale, low * scale, high * scale, {}};
  figure.words = fmt::format("{}, batch {}, {} of {} seeds", recipe.precision, recipe.batch,
                             is_quality_itself ? "mean" : "median", seeds);
  return figure;
}

Figure predicted_to_quality(const Cells& cells, const Cell& cell, const Recipe& recipe, const Kept& kept) {
  const std::string& machine = cells.text(cell, "machine");
  const std::int64_t units = std::max<std::int64_t>(1, cells.count(cell, "units"));
  for (const nlohmann::json& row : list_of(kept, "costs")) {
    if (!is_of(row, recipe) || record::text_member(row, "machine", "") != machine ||
        record::integer_member(row, "units", 1) != units)
      continue;
    const nlohmann::json seconds = record::object_member(row, "seconds");
    if (!seconds.contains("value") || !seconds["value"].is_number())
      return none(record::text_member(seconds, "words", "no time is predicted"));
    const double scale = lab::scale_of_unit(cells.text(cell, "unit"));
    return {record::number_member(seconds, "value", 0) * scale,
            record::number_member(seconds, "low", 0) * scale,
            record::number_member(seconds, "high", 0) * scale,
            "the steps measured here times a predicted step with its data"};
  }
  return none("the steps to the quality are not measured");
}

std::vector<QualityCurve> quality_curves(const Kept& kept) {
  std::vector<QualityCurve> curves;
  for (const nlohmann::json& row : list_of(kept, "trainings")) {
    const auto points = row.find("curve");
    if (record::integer_member(row, "seed", 0) != 1 || points == row.end() || !points->is_array()) continue;
    QualityCurve curve{.label = fmt::format("{}, batch {}", record::text_member(row, "precision", ""),
                                            record::integer_member(row, "batch", 0)),
                       .seconds = {},
                       .values = {}};
    for (const nlohmann::json& point : *points) {
      curve.seconds.push_back(record::number_member(point, "seconds", 0));
      curve.values.push_back(record::number_member(point, "quality", 0));
    }
    if (!curve.values.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace superstep::study
