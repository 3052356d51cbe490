#include "superstep/lab/report/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/lab/formats/table.h"
#include "superstep/lab/report/bench_plots.h"
#include "superstep/page/page.h"

namespace superstep::lab {
namespace {

using nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

// How far the ends of the interval lie from the median: narrower than two times with their units.
std::string interval(const record::Quantity* time) {
  if (!time || !time->low || !time->high || time->value <= 0) return "";
  return fmt::format("{:+.1f}..{:+.1f} %", 100 * (*time->low / time->value - 1),
                     100 * (*time->high / time->value - 1));
}

// The unit stands in the column's heading.
std::string bare_cell(const record::Result& result, const char* name) {
  const record::Quantity* found = result.find(name);
  return found ? format_si(found->value, "") : "";
}

// The protocol's flags in a column's few words: the text below the table says what they mean.
std::string short_flag(const std::string& flag) {
  if (flag.starts_with("warm-up ended at its limit")) return "not steady";
  if (const std::size_t at = flag.find(" samples, "); at != std::string::npos && flag.ends_with(" wanted"))
    return "only " + flag.substr(0, at) + " samples";
  if (const std::size_t at = flag.find(" samples are outliers"); at != std::string::npos)
    return flag.substr(0, at) + " outliers";
  return flag;
}

std::string notes(const record::Result& result) {
  if (result.config.contains("not_run")) return "not run: " + setting_of(result, "not_run");
  const record::Quantity* time = result.find("step_time");
  std::vector<std::string> notes;
  for (const std::string& flag : time ? time->flags : std::vector<std::string>{})
    if (!flag.starts_with("the machine was busy")) notes.push_back(short_flag(flag));  // said once, above
  return join(notes, "; ");
}

Rows result_rows(const std::vector<record::Result>& results) {
  Rows rows;
  for (const record::Result& result : results) {
    if (result.command == "scale" || result.mode == "collective") continue;  // in tables of their own
    rows.push_back({result.workload, result.mode, setting_of(result, "precision"),
                    setting_of(result, "batch"), cell_of(result, "step_time"),
                    interval(result.find("step_time")), bare_cell(result, "throughput"),
                    bare_cell(result, "throughput_with_data"), bare_cell(result, "flops_rate"),
                    cell_of(result, "compute_utilization"), notes(result)});
  }
  return rows;
}

constexpr const char* note_of_notes =
    "Operations are those that are computed; of peak is against the peak measured in the same command; the "
    "interval is given by its ends' distance from the time. "
    "Notes: not steady, the warm-up ended at its limit; only N samples, fewer than wanted in the time given; "
    "drift, "
    "the last third of the samples against the first; outliers lie beyond five median absolute deviations. "
    "None is dropped.";

const std::vector<std::string> result_header{"workload",  "mode",      "precision", "batch",   "time", "95 %",
                                             "samples/s", "with data", "FLOP/s",    "of peak", "notes"};

// ---- published ----------------------------------------------------------------------------------------

const std::vector<std::string> published_header{"published row", "source",           "machine",
                                                "precision",     "metric",           "published",
                                                "ours",          "ours / published", "our result"};

// Rates with a prefix; what is published in percent or milliseconds stays so.
std::string amount(double value, const std::string& unit) {
  return unit.ends_with("/s") ? format_si(value, unit) : fmt::format("{:.4g} {}", value, unit);
}

Rows published_rows(const std::vector<PublishedRatio>& ratios) {
  Rows rows;
  for (const PublishedRatio& r : ratios)
    rows.push_back({r.id, r.source, r.machine, r.precision, r.metric, amount(r.published, r.unit),
                    amount(r.ours, r.unit), fmt::format("{:.3g}", r.ratio), r.result});
  return rows;
}

Rows environment_rows(const record::Result& result) {
  Rows rows;
  const auto add = [&](const char* label, const char* pointer) {
    const json::json_pointer at(pointer);
    if (!result.environment.is_object() || !result.environment.contains(at) ||
        result.environment[at].is_null())
      return;
    const json& value = result.environment[at];
    rows.push_back({label, value.is_string() ? value.get<std::string>() : value.dump()});
  };
  add("measured at", "/date");
  add("processor", "/host/processor");
  add("cores", "/host/cores");
  add("threads", "/placement/threads");
  add("virtual machine", "/host/virtual_machine");
  add("governor", "/host/clock/governor");
  add("load before", "/host/load/load_average_before");
  add("load after", "/host/load/load_average_after");
  add("processors' time that went to others", "/host/load/others_share");
  add("kernel", "/software/kernel");
  add("compiler", "/software/compiler");
  add("flags", "/software/flags");
  add("revision", "/program/git");
  return rows;
}

bool was_busy(const record::Result& result) {
  const json::json_pointer at("/host/load/busy");
  return result.environment.is_object() && result.environment.contains(at) &&
         result.environment[at] == json(true);
}

}  // namespace

BenchReport make_bench_report(const BenchReportSettings& settings) {
  const std::vector<record::Result>& results = settings.results;
  if (results.empty())
    throw Error(ErrorCode::invalid_argument, "there are no results to report", "--results");
  page::Page page("Measured with Superstep");
  page.paragraph(fmt::format(
      "{} results of {}. Every time is measured: the median of all samples after a warm-up, with an "
      "interval that holds the true median with 95 %.",
      results.size(), results.front().created));
  if (std::ranges::any_of(results, was_busy))
    page.paragraph(
        "The machine had other work to do meanwhile: times are longer and intervals wider than on a quiet "
        "one.");
  const Rows rows = result_rows(results);
  if (!rows.empty()) page.heading("Results").table(result_header, rows).paragraph(note_of_notes);
  BenchReport report{.text = result_table(results), .page = settings.out / "index.html"};
  if (!settings.published.empty()) {
    const Rows ratios = published_rows(compare_with_published(results, settings.published));
    page.heading("Beside published numbers");
    if (ratios.empty())
      page.paragraph("No published row has the same workload, mode and metric.");
    else
      page.table(published_header, ratios);
    TextTable table(published_header);
    for (const auto& row : ratios) table.add_row(row);
    report.text += ratios.empty() ? "no published row has a partner here\n" : "\n" + table.to_string();
  }
  add_roofline(page, results);
  add_primitive_sweeps(page, results);
  add_batch_sweeps(page, results);
  add_serving(page, results);
  add_scaling(page, results);
  add_collectives(page, results);
  add_histograms(page, results);
  page.heading("Where it was measured").table({"what", "value"}, environment_rows(results.front()));
  make_folder(settings.out);
  page.write(report.page);
  return report;
}

}  // namespace superstep::lab
