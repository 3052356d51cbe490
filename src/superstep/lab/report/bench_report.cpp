#include "superstep/lab/report/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/lab/formats/table.h"
#include "superstep/page/page.h"

namespace superstep::lab {
namespace {

using nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t most_histograms = 16;

std::string setting(const Result& result, const char* name) {
  const auto found = result.config.find(name);
  if (found == result.config.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string cell(const Result& result, const char* name) {
  const Quantity* found = result.find(name);
  if (!found) return "";
  if (found->unit == "s") return format_seconds(found->value);
  return found->unit.empty() ? fmt::format("{:.1f} %", 100 * found->value) : format_si(found->value, found->unit);
}

std::string interval(const Quantity* time) {
  if (!time || !time->low || !time->high) return "";
  return fmt::format("{} to {}", format_seconds(*time->low), format_seconds(*time->high));
}

std::string notes(const Result& result) {
  if (result.config.contains("not_run")) return "not run: " + setting(result, "not_run");
  const Quantity* time = result.find("step_time");
  return time ? join(time->flags, "; ") : "";
}

Rows result_rows(const std::vector<Result>& results) {
  Rows rows;
  for (const Result& result : results)
    rows.push_back({result.workload, result.mode, setting(result, "precision"), setting(result, "batch"),
                    cell(result, "step_time"), interval(result.find("step_time")), cell(result, "throughput"),
                    cell(result, "throughput_with_data"), cell(result, "flops_rate"), cell(result, "compute_utilization"), notes(result)});
  return rows;
}

const std::vector<std::string> result_header{"workload", "mode", "precision", "batch", "time", "95 % interval", "throughput",
                                             "with data", "rate", "of peak", "notes"};

// ---- published ----------------------------------------------------------------------------------------

const std::vector<std::string> published_header{"published row", "source", "machine", "precision", "metric", "published",
                                                "ours", "ours / published", "our result"};

Rows published_rows(const std::vector<PublishedRatio>& ratios) {
  Rows rows;
  for (const PublishedRatio& r : ratios)
    rows.push_back({r.id, r.source, r.machine, r.precision, r.metric, fmt::format("{:.4g} {}", r.published, r.unit),
                    fmt::format("{:.4g} {}", r.ours, r.unit), fmt::format("{:.3g}", r.ratio), r.result});
  return rows;
}

// ---- roofline -----------------------------------------------------------------------------------------

// The roof of a precision and the results under it.
struct Roof {
  double peak = 0, bandwidth = 0;  // FLOP/s, B/s
  std::vector<double> intensities, rates;
};

std::map<std::string, Roof> roofs_of(const std::vector<Result>& results) {
  std::map<std::string, Roof> roofs;
  for (const Result& result : results) {
    const Quantity *rate = result.find("flops_rate"), *peak = result.find("peak_flops");
    const Quantity *bytes = result.find("bandwidth"), *share = result.find("memory_utilization");
    if (!rate || !peak || !bytes || !share || bytes->value <= 0 || share->value <= 0) continue;
    Roof& roof = roofs[setting(result, "precision")];
    roof.peak = peak->value;
    roof.bandwidth = bytes->value / share->value;
    roof.intensities.push_back(rate->value / bytes->value);
    roof.rates.push_back(rate->value);
  }
  return roofs;
}

// Williams, Waterman and Patterson, "Roofline", CACM 52 (2009).
void add_roofline(page::Page& page, const std::vector<Result>& results) {
  const auto roofs = roofs_of(results);
  if (roofs.empty()) return;
  page::Plot plot{.title = "Roofline", .x_label = "FLOP a byte of inputs, outputs and weights", .y_label = "FLOP/s",
                  .log_x = true, .log_y = true, .series = {}};
  for (const auto& [precision, roof] : roofs) {
    const auto [least, most] = std::ranges::minmax(roof.intensities);
    const double ridge = roof.peak / roof.bandwidth, first = std::min(least, ridge) / 2, last = std::max(most, ridge) * 2;
    plot.series.push_back({.label = precision + ": measured peak and copies in memory", .x = {first, ridge, last},
                           .y = {first * roof.bandwidth, roof.peak, roof.peak}});
    plot.series.push_back({.label = precision + ": primitives", .x = roof.intensities, .y = roof.rates, .low = {}, .high = {},
                           .style = page::Series::Style::points});
  }
  page.heading("Roofline").plot(plot);
  page.paragraph(
      "A primitive left of the ridge is bound by memory, right of it by arithmetic. Above the slope: its tensors were in "
      "a cache. Bytes are the least that must move; layout changes and temporaries come on top.");
}

// ---- sweeps and samples -------------------------------------------------------------------------------

void add_sweeps(page::Page& page, const std::vector<Result>& results) {
  std::map<std::string, std::map<std::string, std::map<double, const Quantity*>>> sweeps;
  for (const Result& result : results)
    if (const Quantity* rate = result.find("throughput"); rate && result.config.contains("batch") && result.config["batch"].is_number())
      sweeps[result.workload + ", " + result.mode][setting(result, "precision")][result.config["batch"].get<double>()] = rate;
  bool any = false;
  for (const auto& [title, precisions] : sweeps) {
    page::Plot plot{.title = title, .x_label = "batch", .y_label = "samples/s", .log_x = true, .log_y = true, .series = {}};
    for (const auto& [precision, points] : precisions) {
      if (points.size() < 2) continue;
      page::Series series{.label = precision, .x = {}, .y = {}};
      for (const auto& [batch, rate] : points) {
        series.x.push_back(batch);
        series.y.push_back(rate->value);
        series.low.push_back(rate->low.value_or(rate->value));
        series.high.push_back(rate->high.value_or(rate->value));
      }
      plot.series.push_back(std::move(series));
    }
    if (plot.series.empty()) continue;
    if (!any) page.heading("Batch sweeps");
    any = true;
    page.plot(plot);
  }
}

// Between the 1st and the 99th percentile: a single outlier would squeeze all others into one bar. It is told
// in the table.
void add_histograms(page::Page& page, const std::vector<Result>& results) {
  constexpr int bins = 40;
  std::size_t shown = 0;
  for (const Result& result : results) {
    const Quantity* time = result.find("step_time");
    if (!time || time->samples.size() < 10 || shown == most_histograms) continue;
    if (shown++ == 0) page.heading("Distribution of samples");
    std::vector<double> milliseconds;
    for (double sample : time->samples) milliseconds.push_back(1e3 * sample);
    std::ranges::sort(milliseconds);
    page::Plot plot{.title = result.id, .x_label = "time of a call, ms", .y_label = "samples", .series = {}};
    plot.series.push_back(page::histogram(fmt::format("{} samples", milliseconds.size()), milliseconds,
                                          nearest_rank(milliseconds, 0.01), nearest_rank(milliseconds, 0.99), bins));
    plot.vertical.push_back({1e3 * time->value, "median"});
    page.plot(plot);
  }
}

Rows environment_rows(const Result& result) {
  Rows rows;
  const auto add = [&](const char* label, const char* pointer) {
    const json::json_pointer at(pointer);
    if (!result.environment.is_object() || !result.environment.contains(at) || result.environment[at].is_null()) return;
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

bool was_busy(const Result& result) {
  const json::json_pointer at("/host/load/busy");
  return result.environment.is_object() && result.environment.contains(at) && result.environment[at] == json(true);
}

}  // namespace

BenchReport make_bench_report(const BenchReportSettings& settings) {
  const std::vector<Result>& results = settings.results;
  if (results.empty()) throw Error(ErrorCode::invalid_argument, "there are no results to report", "--results");
  page::Page page("Measured with Superstep");
  page.paragraph(fmt::format("{} results of {}. Every time is measured: the median of all samples after a warm-up, with an "
                             "interval that holds the true median with 95 %.", results.size(), results.front().created));
  if (std::ranges::any_of(results, was_busy))
    page.paragraph("The machine had other work to do meanwhile: times are longer and intervals wider than on a quiet one.");
  const Rows rows = result_rows(results);
  page.heading("Results").table(result_header, rows);
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
  add_sweeps(page, results);
  add_histograms(page, results);
  page.heading("Where it was measured").table({"what", "value"}, environment_rows(results.front()));
  make_folder(settings.out);
  page.write(report.page);
  return report;
}

}  // namespace superstep::lab
