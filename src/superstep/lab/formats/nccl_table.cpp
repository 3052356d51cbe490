// The table of nccl-tests, so that what reads it reads ours.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/lab/formats/nccl.h"
#include "superstep/lab/formats/writers.h"
#include "superstep/record/member.h"

namespace superstep::lab {
namespace {

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

std::string side(const record::Result& result, const std::string& place) {
  const record::Quantity *time = result.find(place + "_time"), *algbw = result.find(place + "_algbw");
  const record::Quantity *busbw = result.find(place + "_busbw"), *wrong = result.find(place + "_wrong");
  if (!time || !algbw || !busbw)
    return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A");
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", time_text(time->value), fitted(algbw->value * 1e-9, 6),
                     fitted(busbw->value * 1e-9, 6), wrong ? fmt::format("{:g}", wrong->value) : "N/A");
}

std::string row_of(const record::Result& result) {
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n",
                     record::integer_member(result.parameters, "bytes", 0),
                     record::integer_member(result.parameters, "count", 0),
                     record::text_member(result.parameters, "type", "float"),
                     record::text_member(result.parameters, "redop", "sum"),
                     record::integer_member(result.parameters, "root", -1), side(result, "out_of_place"),
                     side(result, "in_place"));
}

std::string header_of(const std::vector<const record::Result*>& rows) {
  const NcclRange range = nccl_range(rows);
  const record::Result& first = *rows.front();
  std::string text = fmt::format("# superstep version {}\n# Collective test starting: {}_perf\n",
                                 record::text_member(first.program, "version", "unknown"), first.workload);
  text += fmt::format(
      "# nThread 1 nGpus 0 minBytes {} maxBytes {} step: 2(factor) warmup iters: {} iters: {} agg iters: 1 "
      "validation: 1 graph: 0 unalign: 0\n#\n# Using devices\n",
      range.least, range.most, record::integer_member(first.config, "warmup", 1),
      record::integer_member(first.config, "iterations", 20));
  for (std::int64_t rank = 0; rank < first.units; ++rank)
    text += fmt::format("#  Rank {:>2} Group  0 on {:>10} device  0 processor\n", rank, host_name_of(first));
  const char* const columns =
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}\n";
  if (first.config.contains("order"))
    text += fmt::format("# Sums: {}, by way of {}\n", record::text_member(first.config, "order", ""),
                        record::text_member(first.config, "road", "the library"));
  text += fmt::format("#\n# {:>54}out-of-place{:>23}in-place\n", "", "");
  text += fmt::format(fmt::runtime(columns), "size", "count", "type", "redop", "root", "time", "algbw",
                      "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
  return text + fmt::format(fmt::runtime(columns), "(B)", "(elements)", "", "", "", "(us)", "(GB/s)",
                            "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

std::string footer_of(const std::vector<const record::Result*>& rows) {
  const NcclTotals totals = nccl_totals(rows);
  return fmt::format(
      "# Out of bounds values : {:.0f} {}\n# Avg bus bandwidth    : {:.4f} \n#\n# Collective test concluded: "
      "{}_perf\n",
      totals.wrong, totals.wrong == 0 ? "OK" : "FAILED", totals.bus_bandwidth * 1e-9, rows.front()->workload);
}

}  // namespace

std::string write_nccl_table(const std::vector<record::Result>& results) {
  // A table a contender, each as a run of the original would print it.
  std::vector<std::vector<const record::Result*>> tables;
  for (const record::Result& result : results) {
    if (result.mode != "collective") continue;
    const auto same = std::ranges::find_if(tables, [&](const auto& rows) {
      return record::text_member(rows.front()->config, "order", "") ==
             record::text_member(result.config, "order", "");
    });
    if (same == tables.end())
      tables.push_back({&result});
    else
      same->push_back(&result);
  }
  std::string text;
  for (const auto& rows : tables) {
    text += header_of(rows);
    for (const record::Result* row : rows) text += row_of(*row);
    text += footer_of(rows);
  }
  return text;
}

}  // namespace superstep::lab
