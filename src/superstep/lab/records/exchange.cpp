#include "superstep/lab/records/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/lab/formats/member.h"

namespace superstep::lab {
namespace {

using nlohmann::json;

constexpr std::uintmax_t most_file_bytes = std::uintmax_t{64} << 20;

json extras_of(const Quantity& quantity) {
  json extras = json::object();
  if (!quantity.statistic.empty()) extras["statistic"] = quantity.statistic;
  if (!quantity.flags.empty()) extras["flags"] = quantity.flags;
  if (!quantity.details.empty()) extras["details"] = quantity.details;
  return extras;
}

void add_extras(Quantity& quantity, const json& extras) {
  quantity.statistic = text_member(extras, "statistic", "");
  quantity.details = object_member(extras, "details");
  const auto flags = extras.find("flags");
  if (flags == extras.end() || !flags->is_array()) return;
  for (const json& flag : *flags)
    if (flag.is_string()) quantity.flags.push_back(flag);
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

std::optional<std::int64_t> record_number(std::string_view name) {
  if (name.starts_with("record:")) name.remove_prefix(7);
  return number_in(name);
}

Result newest(const std::string& workload) {
  const auto found = run::Records().list({.workload = workload, .command = {}, .most = 1});
  if (found.empty())
    throw Error(ErrorCode::not_found,
                workload.empty() ? "there are no records yet" : "no record is of that workload",
                workload.empty() ? "last" : workload, "superstep records list shows what there is");
  return to_result(found.front());
}

// Of results that were measured again the newest; in the order of the records.
std::vector<Result> newest_of_each() {
  constexpr int most = 2000;
  std::vector<run::Record> records;
  std::set<std::pair<std::string, std::string>> seen;
  const run::Records all;
  for (const char* command : {"bench", "scale"})
    for (run::Record& record : all.list({.workload = {}, .command = command, .most = most}))
      if (seen.emplace(command, text_member(record.details, "id", "")).second)
        records.push_back(std::move(record));
  if (records.empty())
    throw Error(ErrorCode::not_found, "the records hold no benchmark", "all", "measure with superstep bench");
  std::ranges::sort(records, {}, &run::Record::id);
  std::vector<Result> results;
  for (const run::Record& record : records) results.push_back(to_result(record));
  return results;
}

}  // namespace

run::Record to_record(const Result& result) {
  run::Record record{.created = result.created,
                     .command = result.command,
                     .workload = result.workload,
                     .machine = result.machine,
                     .folder = {},
                     .config = result.config,
                     .environment = result.environment,
                     .metrics = {}};
  json extras = json::object();
  for (const Quantity& quantity : result.quantities) {
    record.metrics.push_back(to_metric(quantity));
    if (json extra = extras_of(quantity); !extra.empty()) extras[quantity.name] = std::move(extra);
  }
  record.details = {{"id", result.id},       {"mode", result.mode},       {"parameters", result.parameters},
                    {"units", result.units}, {"program", result.program}, {"metrics", std::move(extras)}};
  if (result.flop_per_sample) record.details["flop_per_sample"] = *result.flop_per_sample;
  return record;
}

std::vector<run::Record> to_records(const std::vector<Result>& results) {
  std::vector<run::Record> records;
  for (const Result& result : results) records.push_back(to_record(result));
  return records;
}

Result to_result(const run::Record& record) {
  const json& details = record.details;
  Result result{.command = record.command, .id = text_member(details, "id", ""), .created = record.created};
  if (result.id.empty()) result.id = fmt::format("{}-{}-{}", record.workload, record.command, record.id);
  result.workload = record.workload;
  result.mode = text_member(details, "mode", record.command);
  result.parameters = object_member(details, "parameters");
  result.machine = record.machine;
  result.units = integer_member(details, "units", 1);
  if (const double flop = number_member(details, "flop_per_sample", -1); flop >= 0)
    result.flop_per_sample = flop;
  result.config = record.config;
  if (result.config.is_object()) result.config["record"] = record.id;
  result.environment = record.environment;
  result.program = object_member(details, "program");
  const json extras = object_member(details, "metrics");
  for (const Metric& metric : record.metrics) {
    result.quantities.push_back(to_quantity(metric));
    if (extras.contains(metric.name)) add_extras(result.quantities.back(), extras[metric.name]);
  }
  return result;
}

std::vector<Result> load_results(const std::string& name) {
  if (std::filesystem::exists(name)) {
    std::error_code failure;
    const std::uintmax_t bytes = std::filesystem::file_size(name, failure);
    if (!failure && bytes > most_file_bytes) throw Error(ErrorCode::bad_file, "is larger than 64 MB", name);
    return read_results(read_text_file(name), name);
  }
  if (name == "all") return newest_of_each();
  if (name == "last" || name.starts_with("last:")) return {newest(name.size() > 5 ? name.substr(5) : "")};
  const auto number = record_number(name);
  if (!number)
    throw Error(ErrorCode::not_found, "there is no such file, and it is not the number of a record", name,
                "name a file that --json wrote, or a number that superstep records list shows");
  const auto record = run::Records().find(*number);
  if (!record)
    throw Error(ErrorCode::not_found, "there is no such record", name,
                "superstep records list shows what there is");
  return {to_result(*record)};
}

}  // namespace superstep::lab
