// The table of nccl-tests, so that what reads it reads ours.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/lab/formats/writers.h"

namespace superstep::lab {
namespace {

using nlohmann::json;

// Two decimals, fewer when that is too wide.
std::string fitted(double value, std::size_t width) {
  for (int decimals = 2; decimals > 0; --decimals)
    if (std::string text = fmt::format("{:.{}f}", value, decimals); text.size() <= width) return text;
  return fmt::format("{:.0f}", value);
}

// Microseconds: four to five significant digits.
std::string time_text(double seconds) {
  const double us = seconds * 1e6;
  return fmt::format("{:.{}f}", us, us >= 1e4 ? 0 : us >= 100 ? 1 : 2);
}

std::int64_t integer(const json& object, const char* name, std::int64_t otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

json host_of(const Result& result) {
  return result.environment.is_object() ? result.environment.value("host", json::object()) : json::object();
}

std::string text_of(const json& object, const char* name, const char* otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

std::string side(const Result& result, const std::string& place) {
  const Quantity *time = result.find(place + "_time"), *algbw = result.find(place + "_algbw");
  const Quantity *busbw = result.find(place + "_busbw"), *wrong = result.find(place + "_wrong");
  if (!time || !algbw || !busbw)
    return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A");
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", time_text(time->value), fitted(algbw->value * 1e-9, 6),
                     fitted(busbw->value * 1e-9, 6), wrong ? fmt::format("{:g}", wrong->value) : "N/A");
}

std::string row_of(const Result& result) {
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", integer(result.parameters, "bytes", 0),
                     integer(result.parameters, "count", 0), text_of(result.parameters, "type", "float"),
                     text_of(result.parameters, "redop", "sum"), integer(result.parameters, "root", -1),
                     side(result, "out_of_place"), side(result, "in_place"));
}

std::string header_of(const std::vector<const Result*>& rows) {
  std::int64_t least = INT64_MAX, most = 0;
  for (const Result* row : rows) {
    least = std::min(least, integer(row->parameters, "bytes", 0));
    most = std::max(most, integer(row->parameters, "bytes", 0));
  }
  const Result& first = *rows.front();
  std::string text = fmt::format("# superstep version {}\n# Collective test starting: {}_perf\n",
                                 text_of(first.program, "version", "unknown"), first.workload);
  text += fmt::format(
      "# nThread 1 nGpus 0 minBytes {} maxBytes {} step: 2(factor) warmup iters: {} iters: {} agg iters: 1 "
      "validation: 1 graph: 0 unalign: 0\n#\n# Using devices\n",
      least, most, integer(first.config, "warmup", 1), integer(first.config, "iterations", 20));
  for (std::int64_t rank = 0; rank < first.units; ++rank)
    text += fmt::format("#  Rank {:>2} Group  0 on {:>10} device  0 processor\n", rank,
                        text_of(host_of(first), "hostname", "host"));
  const char* const columns =
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}\n";
  text += fmt::format("#\n# {:>54}out-of-place{:>23}in-place\n", "", "");
  text += fmt::format(fmt::runtime(columns), "size", "count", "type", "redop", "root", "time", "algbw",
                      "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
  return text + fmt::format(fmt::runtime(columns), "(B)", "(elements)", "", "", "", "(us)", "(GB/s)",
                            "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

std::string footer_of(const std::vector<const Result*>& rows) {
  double sum = 0, wrong = 0;
  std::size_t count = 0;
  for (const Result* row : rows)
    for (const char* place : {"out_of_place", "in_place"}) {
      if (const Quantity* busbw = row->find(std::string(place) + "_busbw")) sum += busbw->value, ++count;
      if (const Quantity* bad = row->find(std::string(place) + "_wrong")) wrong += bad->value;
    }
  return fmt::format(
      "# Out of bounds values : {:.0f} {}\n# Avg bus bandwidth    : {:.4f} \n#\n# Collective test concluded: "
      "{}_perf\n",
      wrong, wrong == 0 ? "OK" : "FAILED", count ? sum * 1e-9 / static_cast<double>(count) : 0,
      rows.front()->workload);
}

}  // namespace

std::string write_nccl_table(const std::vector<Result>& results) {
  std::vector<const Result*> rows;
  for (const Result& result : results)
    if (result.mode == "collective") rows.push_back(&result);
  if (rows.empty()) return {};
  std::string text = header_of(rows);
  for (const Result* row : rows) text += row_of(*row);
  return text + footer_of(rows);
}

}  // namespace superstep::lab
