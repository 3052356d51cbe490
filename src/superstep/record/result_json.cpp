#include "superstep/record/result_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/record/member.h"
#include "superstep/record/summary.h"

namespace superstep::record {
namespace {

using nlohmann::json;

constexpr const char* schema = "superstep-result/1";
constexpr std::size_t most_bytes = std::size_t{64} << 20;
constexpr int deepest = 64;

void add_statistics(json& object, const std::vector<double>& samples) {
  const Summary summary = summarize(samples);
  object["samples"] = samples;
  object["mean"] = summary.mean;
  object["stddev"] = summary.stddev;
  object["variation"] = summary.variation;
  object["min"] = summary.min;
  object["max"] = summary.max;
  object["p05"] = summary.p05;
  object["p95"] = summary.p95;
  object["outliers"] = summary.outliers;
}

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json quantity_json(const Quantity& quantity) {
  json object = quantity.details.is_object() ? quantity.details : json::object();
  object["value"] = number(quantity.value);
  object["unit"] = quantity.unit;
  object["how"] = name_of(quantity.how);
  if (!quantity.statistic.empty()) object["statistic"] = quantity.statistic;
  if (!quantity.samples.empty()) add_statistics(object, quantity.samples);
  if (quantity.low) object["low"] = number(*quantity.low);
  if (quantity.high) object["high"] = number(*quantity.high);
  if (!quantity.flags.empty() || !quantity.samples.empty()) object["flags"] = quantity.flags;
  return object;
}

[[noreturn]] void bad(const std::string& member, const std::string& message) {
  throw Error(ErrorCode::bad_file, message, member, "is it a file that --json wrote?");
}

std::optional<double> number_of(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// Members that this file makes itself; all others are details.
constexpr std::array members_of_metric{"value",  "unit", "how",   "statistic", "samples", "mean",
                                       "stddev", "min",  "max",   "p05",       "p95",     "outliers",
                                       "low",    "high", "flags", "variation"};
constexpr std::array members_of_result{"schema",   "command", "id",     "created", "program",
                                       "workload", "machine", "config", "metrics", "environment"};

json others(const json& object, std::span<const char* const> own) {
  json found = json::object();
  for (const auto& [member, value] : object.items())
    if (std::ranges::find(own, std::string_view(member)) == own.end()) found[member] = value;
  return found;
}

Quantity quantity_from_json(const std::string& name, const json& object) {
  if (!object.is_object()) bad("metrics/" + name, "is not an object");
  const auto value = object.find("value");
  if (value == object.end() || !(value->is_number() || value->is_null()))
    bad("metrics/" + name, "has no value that is a number or null");
  Quantity quantity{.name = name, .unit = text_member(object, "unit", ""), .value = std::nan("")};
  if (value->is_number()) quantity.value = value->get<double>();
  quantity.how = how_from_name(text_member(object, "how", ""));
  quantity.statistic = text_member(object, "statistic", "");
  quantity.low = number_of(object, "low");
  quantity.high = number_of(object, "high");
  for (const char* list : {"samples", "flags"})
    if (object.contains(list) && !object[list].is_array())
      bad("metrics/" + name + "/" + list, "is not a list");
  for (const json& sample : object.value("samples", json::array())) {
    if (!sample.is_number()) bad("metrics/" + name + "/samples", "holds something that is not a number");
    quantity.samples.push_back(sample.get<double>());
  }
  for (const json& flag : object.value("flags", json::array()))
    if (flag.is_string()) quantity.flags.push_back(flag);
  quantity.details = others(object, members_of_metric);
  return quantity;
}

void check_schema(const json& object) {
  const std::string found = text_member(object, "schema", "");
  constexpr std::string_view name = "superstep-result/";
  if (!found.starts_with(name)) bad("schema", fmt::format("is '{}', not {}", found.substr(0, 40), schema));
  if (found == schema) return;
  throw Error(ErrorCode::bad_file,
              fmt::format("is of version {}, this program knows {}", found.substr(0, 40), schema), "schema",
              "use the newer program");
}

// The parser recurses: depth is looked at before it runs.
void check_depth(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{') && ++depth > deepest)
      throw Error(ErrorCode::bad_file, fmt::format("is nested more than {} levels deep", deepest));
    else if (!quoted && (c == ']' || c == '}'))
      --depth;
  }
}

std::vector<Result> parse(std::string_view text) {
  if (text.size() > most_bytes)
    throw Error(ErrorCode::bad_file, fmt::format("has more than {} bytes", most_bytes));
  check_depth(text);
  const json parsed = parse_json(text);
  if (parsed.is_discarded())
    throw Error(ErrorCode::bad_file, "is not JSON", {}, "is it a file that --json wrote?");
  if (!parsed.is_array()) return {result_from_json(parsed)};
  std::vector<Result> results;
  for (std::size_t i = 0; i < parsed.size(); ++i) try {
      results.push_back(result_from_json(parsed[i]));
    } catch (const Error& error) {
      throw error.in(fmt::format("result {}", i));
    }
  return results;
}

}  // namespace

json to_json(const Result& result) {
  json workload{{"name", result.workload}, {"parameters", result.parameters}};
  workload["mode"] = result.mode.empty() ? json(nullptr) : json(result.mode);
  workload["flop_per_sample"] = result.flop_per_sample ? json(*result.flop_per_sample) : json(nullptr);
  json metrics = json::object();
  for (const Quantity& quantity : result.quantities) metrics[quantity.name] = quantity_json(quantity);
  json object = result.details.is_object() ? result.details : json::object();
  object.update({{"schema", schema},
                 {"command", result.command},
                 {"id", result.id.empty() ? usual_id(result) : result.id},
                 {"created", result.created},
                 {"program", result.program},
                 {"workload", std::move(workload)},
                 {"machine", {{"id", result.machine}, {"units", result.units}}},
                 {"config", result.config},
                 {"metrics", std::move(metrics)},
                 {"environment", result.environment}});
  if (result.number > 0 && result.config.is_object()) object["config"]["record"] = result.number;
  return object;
}

Result result_from_json(const json& object) {
  if (!object.is_object()) bad("", "is not an object");
  check_schema(object);
  Result result{.command = text_member(object, "command", ""),
                .id = text_member(object, "id", ""),
                .created = text_member(object, "created", "")};
  const json workload = object_member(object, "workload"), machine = object_member(object, "machine");
  result.workload = text_member(workload, "name", "");
  result.mode = text_member(workload, "mode", "");
  result.parameters = object_member(workload, "parameters");
  result.flop_per_sample = number_of(workload, "flop_per_sample");
  result.machine = text_member(machine, "id", "");
  // A file's number is anybody's: within what a count can be.
  result.units = static_cast<std::int64_t>(std::clamp(number_of(machine, "units").value_or(1), 1.0, 1e9));
  result.config = object_member(object, "config");
  result.program = object_member(object, "program");
  result.environment = object_member(object, "environment");
  if (!object.contains("metrics") || !object["metrics"].is_object()) bad("metrics", "is missing");
  result.details = others(object, members_of_result);
  for (const auto& [name, metric] : object["metrics"].items())
    result.quantities.push_back(quantity_from_json(name, metric));
  return result;
}

std::string write_results(const std::vector<Result>& results) {
  json all = json::array();
  for (const Result& result : results) all.push_back(to_json(result));
  return (results.size() == 1 ? all[0] : all).dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::vector<Result> read_results(std::string_view text, const std::string& where) {
  try {
    return parse(text);
  } catch (const Error& error) {
    throw error.in(where);
  }
}

}  // namespace superstep::record
