#include "superstep/run/quality.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::run {
namespace {

using nlohmann::json;

bool reaches(const Quality& quality, double value) {
  return as_good(quality.reached, value, quality.higher_is_better);
}

std::string not_worse_than(const Quality& quality, const Reference& other) {
  return fmt::format("{} {}", quality.reached == other.value ? "as good as" : "better than", other.method);
}

// Where it stands against the conventional method, or against the floor where there is no such method.
std::string place(const Quality& quality) {
  const auto& [floor, conventional, limit, target] = quality.references;
  if (conventional)
    return reaches(quality, conventional->value) ? not_worse_than(quality, *conventional)
           : floor ? fmt::format("between {} and {}", floor->method, conventional->method)
                   : fmt::format("{} is better", conventional->method);
  return floor ? not_worse_than(quality, *floor) : "";
}

json to_json(const std::optional<Reference>& reference) {
  return reference ? json{{"method", reference->method}, {"value", reference->value}} : json(nullptr);
}

std::optional<Reference> reference_from(const json& object) {
  if (object.is_null()) return std::nullopt;
  return Reference{object.at("method"), object.at("value")};
}

}  // namespace

bool higher_is_better(const workload::Workload& workload, std::string_view metric) {
  std::vector<std::string> names;
  for (const workload::MetricSpec& each : workload.metrics) {
    if (each.name == metric) return each.higher_is_better;
    names.push_back(each.name);
  }
  throw Error(ErrorCode::invalid_argument,
              names.empty() ? fmt::format("'{}' measures no quality", workload.name)
                            : fmt::format("'{}' has no such metric", workload.name),
              std::string(metric), unknown_name_hint(metric, names));
}

bool as_good(double a, double b, bool higher_is_better) { return higher_is_better ? a >= b : a <= b; }

Quality judge(const workload::Workload& workload, const Metric& reached, std::int64_t samples,
              References references) {
  Quality quality{.metric = reached.name,
                  .unit = reached.unit,
                  .higher_is_better = higher_is_better(workload, reached.name),
                  .reached = reached.value,
                  .samples = samples,
                  .target = std::nullopt,
                  .references = std::move(references)};
  if (workload.target && workload.target->metric == reached.name) quality.target = workload.target->value;
  if (quality.references.target) quality.target = quality.references.target;
  return quality;
}

Standing standing(const Quality& quality) {
  const auto& floor = quality.references.floor;
  if (floor && !reaches(quality, floor->value)) return Standing::below_floor;
  if (quality.target && reaches(quality, *quality.target)) return Standing::target_reached;
  return quality.target || floor ? Standing::short_of_target : Standing::unknown;
}

std::string verdict(const Quality& quality) {
  const auto& [floor, conventional, limit, target] = quality.references;
  const Standing where = standing(quality);
  if (where == Standing::below_floor) return fmt::format("below the floor: {} is better", floor->method);
  std::string text = !quality.target                     ? "no target is set"
                     : where == Standing::target_reached ? "target reached"
                                                         : "target not reached";
  if (const std::string beside = place(quality); !beside.empty()) text += ", " + beside;
  if (limit && !as_good(limit->value, quality.reached, quality.higher_is_better))
    text += fmt::format("; better than {} allows: look for a leak", limit->method);
  return text;
}

json to_json(const Quality& quality) {
  const References& others = quality.references;
  return {{"metric", quality.metric},
          {"unit", quality.unit},
          {"better", quality.higher_is_better ? "higher" : "lower"},
          {"reached", quality.reached},
          {"samples", quality.samples},
          {"target", quality.target ? json(*quality.target) : json(nullptr)},
          {"floor", to_json(others.floor)},
          {"conventional", to_json(others.conventional)},
          {"limit", to_json(others.limit)},
          {"verdict", verdict(quality)}};
}

Quality quality_from_json(const json& object) {
  try {
    Quality quality{
        .metric = object.at("metric"),
        .unit = object.at("unit"),
        .higher_is_better = object.at("better") == "higher",
        .reached = object.at("reached").is_null() ? std::nan("") : object.at("reached").get<double>(),
        .samples = object.at("samples"),
        .target = std::nullopt,
        .references = {reference_from(object.at("floor")), reference_from(object.at("conventional")),
                       reference_from(object.at("limit")), std::nullopt}};
    if (!object.at("target").is_null()) quality.target = object.at("target").get<double>();
    return quality;
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, fmt::format("is no quality of a run: {}", error.what()), "quality");
  }
}

}  // namespace superstep::run
