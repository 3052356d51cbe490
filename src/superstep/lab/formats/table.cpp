#include "superstep/lab/formats/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/lab/formats/writers.h"
#include "superstep/record/result_json.h"

namespace superstep::lab {
namespace {

std::string setting(const record::Result& result, const char* name) {
  const auto found = result.config.find(name);
  if (found == result.config.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string format(const record::Quantity& quantity) {
  if (quantity.unit == "s") return format_seconds(quantity.value);
  if (quantity.unit.empty()) return fmt::format("{:.4g}", quantity.value);
  if (quantity.unit == "px") return fmt::format("{:.4f} px", quantity.value);
  return format_si(quantity.value, quantity.unit);
}

std::string cell(const record::Result& result, const char* name) {
  const record::Quantity* found = result.find(name);
  return found ? format(*found) : "";
}

std::string percent(const record::Result& result, const char* name) {
  const record::Quantity* found = result.find(name);
  return found ? fmt::format("{:.1f} %", 100 * found->value) : "";
}

std::string interval(const record::Quantity& quantity) {
  if (!quantity.low || !quantity.high) return "";
  record::Quantity low = quantity, high = quantity;
  low.value = *quantity.low;
  high.value = *quantity.high;
  return fmt::format("[{}, {}]", format(low), format(high));
}

// Flags once, whichever metrics they are on; the machine's load is told apart.
std::string notes_of(const record::Result& result) {
  if (result.config.contains("not_run")) return "not run: " + setting(result, "not_run");
  const record::Quantity* time = result.find("step_time");
  std::vector<std::string> notes;
  for (const std::string& flag : time ? time->flags : std::vector<std::string>{})
    if (!flag.starts_with("the machine was busy")) notes.push_back(flag);
  return join(notes, "; ");
}

// What not every measurement has: a column is there when one of the results has something to say in it.
struct Column {
  std::string header;
  std::string (*cell)(const record::Result&);
};

std::vector<Column> columns_in_use(const std::vector<record::Result>& results) {
  std::vector<Column> columns{
      {"of peak", [](const record::Result& result) { return percent(result, "compute_utilization"); }},
      {"paper's formula", [](const record::Result& result) { return cell(result, "flops_emani2022"); }},
      {"notes", notes_of}};
  std::erase_if(columns, [&](const Column& column) {
    return std::ranges::all_of(results,
                               [&](const record::Result& result) { return column.cell(result).empty(); });
  });
  return columns;
}

}  // namespace

std::string one_line(const record::Result& result) {
  if (result.config.contains("not_run")) return result.id + ": not run: " + setting(result, "not_run");
  std::string text = result.id + ": " + cell(result, "step_time");
  for (const char* name : {"flops_rate", "throughput"})
    if (result.find(name)) text += ", " + cell(result, name);
  return text;
}

std::string result_table(const std::vector<record::Result>& results) {
  if (!results.empty() && results.front().mode == "collective") return write_nccl_table(results);
  std::vector<std::string> header{"workload", "mode",    "precision",  "batch", "time",
                                  "95 %",     "samples", "throughput", "rate"};
  const std::vector<Column> columns = columns_in_use(results);
  for (const Column& column : columns) header.push_back(column.header);
  TextTable table(std::move(header));
  for (const record::Result& result : results) {
    const record::Quantity* time = result.find("step_time");
    std::vector<std::string> cells{result.workload,
                                   result.mode,
                                   setting(result, "precision"),
                                   setting(result, "batch"),
                                   cell(result, "step_time"),
                                   time ? interval(*time) : "",
                                   time ? std::to_string(time->samples.size()) : "",
                                   cell(result, "throughput"),
                                   cell(result, "flops_rate")};
    for (const Column& column : columns) cells.push_back(column.cell(result));
    table.add_row(std::move(cells));
  }
  std::string text = table.to_string();
  for (const record::Result& result : results)
    for (const record::Quantity& quantity : result.quantities)
      if (quantity.name.find("latency_") != std::string::npos || quantity.name == "throughput_with_data")
        text += fmt::format("{}: {} {}\n", result.id, quantity.name, format(quantity));
  return text;
}

std::string result_details(const record::Result& result) {
  TextTable table({"metric", "value", "95 %", "how", "samples", "flags"});
  for (const record::Quantity& quantity : result.quantities)
    table.add_row({quantity.name, format(quantity), interval(quantity),
                   quantity.how == How::measured ? "measured" : "predicted",
                   quantity.samples.empty() ? "" : std::to_string(quantity.samples.size()),
                   join(quantity.flags, "; ")});
  return fmt::format("{}  {} {} on {}\n{}config {}\n", result.created, result.command, result.id,
                     result.machine, table.to_string(), record::to_json(result)["config"].dump());
}

}  // namespace superstep::lab
