#include "superstep/lab/formats/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::lab {
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

json to_json(const Quantity& quantity) {
  json object = quantity.details.is_object() ? quantity.details : json::object();
  object["value"] = number(quantity.value);
  object["unit"] = quantity.unit;
  object["how"] = quantity.how == How::measured ? "measured" : "predicted";
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

std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

json object_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : json::object();
}

std::optional<double> number_of(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// Members that this file makes itself; all others are details.
bool is_own(const std::string& name) {
  static const std::vector<std::string> names{"value",  "unit", "how",   "statistic", "samples", "mean",
                                              "stddev", "min",  "max",   "p05",       "p95",     "outliers",
                                              "low",    "high", "flags", "variation"};
  return std::ranges::find(names, name) != names.end();
}

Quantity quantity_from_json(const std::string& name, const json& object) {
  if (!object.is_object()) bad("metrics/" + name, "is not an object");
  const auto value = object.find("value");
  if (value == object.end() || !(value->is_number() || value->is_null()))
    bad("metrics/" + name, "has no value that is a number or null");
  Quantity quantity{.name = name, .unit = text_of(object, "unit"), .value = std::nan("")};
  if (value->is_number()) quantity.value = value->get<double>();
  quantity.how = text_of(object, "how") == "predicted" ? How::predicted : How::measured;
  quantity.statistic = text_of(object, "statistic");
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
  for (const auto& [member, detail] : object.items())
    if (!is_own(member)) quantity.details[member] = detail;
  return quantity;
}

void check_schema(const json& object) {
  const std::string found = text_of(object, "schema");
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
  const json parsed = json::parse(text, nullptr, false);
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

Quantity with_summary(Quantity quantity, const Measurement& measurement) {
  const Summary summary = summarize(quantity.samples);
  quantity.statistic = "median";
  quantity.value = summary.median;
  quantity.low = summary.low;
  quantity.high = summary.high;
  quantity.flags = measurement.flags;
  quantity.details = {{"warmup", measurement.warm_up_calls},
                      {"warmup_seconds", measurement.warm_up_seconds},
                      {"steady", measurement.steady},
                      {"calls_per_sample", measurement.calls_per_sample},
                      {"coverage", summary.coverage},
                      {"clustering", summary.clustering},
                      {"drift", summary.drift},
                      {"stopped", name_of(measurement.stop)}};
  return quantity;
}

}  // namespace

const Quantity* Result::find(std::string_view name) const {
  const auto found = std::ranges::find(quantities, name, &Quantity::name);
  return found == quantities.end() ? nullptr : &*found;
}

void Result::add(std::string name, double value, std::string unit) {
  quantities.push_back({.name = std::move(name), .unit = std::move(unit), .value = value});
}

Quantity time_quantity(std::string name, const Measurement& measurement) {
  return with_summary({.name = std::move(name), .unit = "s", .samples = measurement.samples}, measurement);
}

Quantity rate_quantity(std::string name, double amount, std::string unit, const Measurement& measurement,
                       KeepSamples keep) {
  Quantity quantity{.name = std::move(name), .unit = std::move(unit)};
  for (double seconds : measurement.samples) quantity.samples.push_back(amount / seconds);
  quantity = with_summary(std::move(quantity), measurement);
  if (keep == KeepSamples::no) quantity.samples.clear();
  return quantity;
}

Metric to_metric(const Quantity& quantity) {
  return {.name = quantity.name,
          .value = quantity.value,
          .unit = quantity.unit,
          .how = quantity.how,
          .samples = quantity.samples,
          .low = quantity.low,
          .high = quantity.high};
}

Quantity to_quantity(const Metric& metric) {
  return {.name = metric.name,
          .unit = metric.unit,
          .value = metric.value,
          .how = metric.how,
          .statistic = {},
          .samples = metric.samples,
          .low = metric.low,
          .high = metric.high,
          .flags = {}};
}

json to_json(const Result& result) {
  json workload{{"name", result.workload}, {"mode", result.mode}, {"parameters", result.parameters}};
  workload["flop_per_sample"] = result.flop_per_sample ? json(*result.flop_per_sample) : json(nullptr);
  json metrics = json::object();
  for (const Quantity& quantity : result.quantities) metrics[quantity.name] = to_json(quantity);
  return {{"schema", schema},
          {"command", result.command},
          {"id", result.id},
          {"created", result.created},
          {"program", result.program},
          {"workload", std::move(workload)},
          {"machine", {{"id", result.machine}, {"units", result.units}}},
          {"config", result.config},
          {"metrics", std::move(metrics)},
          {"environment", result.environment}};
}

Result result_from_json(const json& object) {
  if (!object.is_object()) bad("", "is not an object");
  check_schema(object);
  Result result{.command = text_of(object, "command"),
                .id = text_of(object, "id"),
                .created = text_of(object, "created")};
  const json workload = object_of(object, "workload"), machine = object_of(object, "machine");
  result.workload = text_of(workload, "name");
  result.mode = text_of(workload, "mode");
  result.parameters = object_of(workload, "parameters");
  result.flop_per_sample = number_of(workload, "flop_per_sample");
  result.machine = text_of(machine, "id");
  // A file's number is anybody's: within what a count can be.
  result.units = static_cast<std::int64_t>(std::clamp(number_of(machine, "units").value_or(1), 1.0, 1e9));
  result.config = object_of(object, "config");
  result.program = object_of(object, "program");
  result.environment = object_of(object, "environment");
  if (!object.contains("metrics") || !object["metrics"].is_object()) bad("metrics", "is missing");
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

}  // namespace superstep::lab
