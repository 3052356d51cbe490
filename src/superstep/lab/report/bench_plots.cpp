#include "superstep/lab/report/bench_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/lab/bench/baseline.h"
#include "superstep/record/member.h"

namespace superstep::lab {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t most_histograms = 12, fewest_for_histogram = 20;

double value_of(const record::Result& result, const char* name) {
  const record::Quantity* found = result.find(name);
  return found ? found->value : std::nan("");
}

void add_point(page::Series& series, double x, const record::Quantity& y) {
  series.x.push_back(x);
  series.y.push_back(y.value);
  series.low.push_back(y.low.value_or(y.value));
  series.high.push_back(y.high.value_or(y.value));
}

// Points of one series, in the order of x.
using Points = std::map<double, const record::Quantity*>;

page::Series series_of(const std::string& label, const Points& points) {
  page::Series series{.label = label, .x = {}, .y = {}};
  for (const auto& [x, quantity] : points) add_point(series, x, *quantity);
  return series;
}

// ---- sweeps -------------------------------------------------------------------------------------------

// A plot for each title with a series that has at least two points.
void add_plots(page::Page& page, const char* heading, const char* y_label,
               const std::map<std::string, std::pair<std::string, std::map<std::string, Points>>>& plots) {
  bool any = false;
  for (const auto& [title, labelled] : plots) {
    page::Plot plot{.title = title,
                    .x_label = labelled.first,
                    .y_label = y_label,
                    .log_x = true,
                    .log_y = true,
                    .series = {}};
    for (const auto& [label, points] : labelled.second)
      if (points.size() > 1) plot.series.push_back(series_of(label, points));
    if (plot.series.empty()) continue;
    if (!any) page.heading(heading);
    any = true;
    page.plot(plot);
  }
}

bool is_sweep(const record::Result& result) { return record::flag_member(result.config, "sweep", false); }

// ---- roofline -----------------------------------------------------------------------------------------

struct Kernel {
  const record::Result* result;
  double intensity, rate, peak, bandwidth;  // FLOP a byte, FLOP/s, FLOP/s, B/s

  double roof() const { return std::min(peak, intensity * bandwidth); }
  bool by_memory() const { return intensity * bandwidth < peak; }
};

std::vector<Kernel> kernels_of(const std::vector<record::Result>& results) {
  std::vector<Kernel> kernels;
  for (const record::Result& result : results) {
    const double rate = value_of(result, "flops_rate"), bytes = value_of(result, "bandwidth");
    const double peak = value_of(result, "peak_flops"), share = value_of(result, "memory_utilization");
    if (is_baseline(result) || !(rate > 0 && bytes > 0 && peak > 0 && share > 0)) continue;
    kernels.push_back({&result, rate / bytes, rate, peak, bytes / share});
  }
  return kernels;
}

std::string kind_of(const record::Result& result) {
  return record::text_member(result.parameters, "kind", result.workload);
}

Rows kernel_rows(std::vector<Kernel> kernels) {
  std::ranges::sort(kernels, {}, &Kernel::intensity);
  Rows rows;
  for (const Kernel& kernel : kernels)
    rows.push_back({kernel.result->workload, kernel.result->mode, setting_of(*kernel.result, "precision"),
                    fmt::format("{:.{}f}", kernel.intensity, kernel.intensity < 10 ? 3 : 0),
                    format_si(kernel.rate, "FLOP/s"), format_si(kernel.roof(), "FLOP/s"),
                    fmt::format("{:.1f} %", 100 * kernel.rate / kernel.roof()),
                    kernel.by_memory() ? "memory" : "arithmetic"});
  return rows;
}

page::Series roof_line(const std::string& label, const Kernel& kernel, double first, double last) {
  const double ridge = kernel.peak / kernel.bandwidth;
  return {.label = label,
          .x = {std::min(first, ridge / 2), ridge, std::max(last, 2 * ridge)},
          .y = {std::min(first, ridge / 2) * kernel.bandwidth, kernel.peak, kernel.peak}};
}

// ---- serving ------------------------------------------------------------------------------------------

// The machine's load is told once, above.
std::string serving_notes(const record::Quantity& latency) {
  std::vector<std::string> notes;
  for (const std::string& flag : latency.flags)
    if (!flag.starts_with("the machine was busy")) notes.push_back(flag.substr(0, flag.find(": requests")));
  return join(notes, "; ");
}

std::string rate_cell(const record::Result& result, const std::string& name) {
  const record::Quantity* found = result.find(name);
  return found ? format_si(found->value, "") : "";
}

Rows serving_rows(const std::vector<record::Result>& results) {
  Rows rows;
  for (const record::Result& result : results)
    for (const std::string load : {"single", "offline", "poisson"}) {
      const record::Quantity* mean = result.find(load + "_latency_mean");
      if (!mean) continue;
      std::vector<std::string> row{result.workload,
                                   setting_of(result, "precision"),
                                   setting_of(result, "batch"),
                                   load,
                                   rate_cell(result, load + "_rate_offered"),
                                   rate_cell(result, load + "_throughput")};
      for (const char* name :
           {"_latency_p50", "_latency_p90", "_latency_p99", "_queueing_mean", "_busy_share"})
        row.push_back(cell_of(result, (load + name).c_str()));
      row.push_back(serving_notes(*mean));
      rows.push_back(std::move(row));
    }
  return rows;
}

// ---- scaling ------------------------------------------------------------------------------------------

Rows scaling_rows(const std::vector<const record::Result*>& points) {
  Rows rows;
  for (const record::Result* result : points)
    rows.push_back({result->workload, result->mode, std::to_string(result->units),
                    setting_of(*result, "batch"), cell_of(*result, "throughput"),
                    cell_of(*result, "scaling_efficiency"), cell_of(*result, "parallel_fraction"),
                    cell_of(*result, "step_time"), cell_of(*result, "communication_time"),
                    cell_of(*result, "waiting_time")});
  return rows;
}

page::Plot scaling_plot(const std::string& title, const std::vector<const record::Result*>& points) {
  page::Plot plot{
      .title = title, .x_label = "ranks", .y_label = "samples/s", .log_x = true, .log_y = true, .series = {}};
  page::Series measured{.label = "measured", .x = {}, .y = {}}, ideal{.label = "ideal", .x = {}, .y = {}};
  const record::Result& first = *points.front();
  for (const record::Result* result : points) {
    add_point(measured, static_cast<double>(result->units), *result->find("throughput"));
    ideal.x.push_back(static_cast<double>(result->units));
    ideal.y.push_back(value_of(first, "throughput") * static_cast<double>(result->units) /
                      static_cast<double>(first.units));
  }
  plot.series = {std::move(measured), std::move(ideal)};
  return plot;
}

}  // namespace

std::string setting_of(const record::Result& result, const char* name) {
  const auto found = result.config.find(name);
  if (found == result.config.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string cell_of(const record::Result& result, const char* name) {
  const record::Quantity* found = result.find(name);
  if (!found || !std::isfinite(found->value)) return "";
  if (found->unit == "s") return format_seconds(found->value);
  return found->unit.empty() ? fmt::format("{:.1f} %", 100 * found->value)
                             : format_si(found->value, found->unit);
}

// Williams, Waterman and Patterson, "Roofline", CACM 52 (2009).
void add_roofline(page::Page& page, const std::vector<record::Result>& results) {
  const std::vector<Kernel> kernels = kernels_of(results);
  if (kernels.empty()) return;
  page::Plot plot{.title = "Roofline of this machine",
                  .x_label = "FLOP a byte of inputs, outputs and weights",
                  .y_label = "FLOP/s",
                  .log_x = true,
                  .log_y = true,
                  .series = {}};
  std::map<std::string, const Kernel*> roofs;
  std::map<std::string, page::Series> points;
  double first = kernels.front().intensity, last = first;
  for (const Kernel& kernel : kernels) {
    const std::string precision = setting_of(*kernel.result, "precision");
    roofs.try_emplace(precision, &kernel);
    page::Series& series = points[kind_of(*kernel.result) + " " + precision];
    series.style = page::Series::Style::points;
    series.x.push_back(kernel.intensity);
    series.y.push_back(kernel.rate);
    first = std::min(first, kernel.intensity / 2);
    last = std::max(last, kernel.intensity * 2);
  }
  for (const auto& [precision, kernel] : roofs)
    plot.series.push_back(roof_line("roof of " + precision, *kernel, first, last));
  for (auto& [label, series] : points) {
    series.label = label;
    plot.series.push_back(std::move(series));
  }
  page.heading("Roofline");
  page.paragraph(
      "The roofs are the peaks and the bandwidth of copies in memory that were measured with the primitives. "
      "Left "
      "of the ridge memory bounds, right of it arithmetic. Above a roof: the tensors were in a cache, which "
      "is "
      "faster than memory. Bytes are the least that must move; layout changes and temporaries come on top.");
  page.begin_row().plot(plot);
  page.table(
      {"primitive", "mode", "precision", "FLOP a byte", "rate", "roof there", "of the roof", "bound by"},
      kernel_rows(kernels));
  page.end_row();
}

void add_primitive_sweeps(page::Page& page, const std::vector<record::Result>& results) {
  std::map<std::string, std::pair<std::string, std::map<std::string, Points>>> plots;
  for (const record::Result& result : results) {
    const record::Quantity* rate = result.find("flops_rate");
    if (!rate || is_baseline(result) || !is_sweep(result)) continue;
    const bool product = kind_of(result) == "gemm";
    auto& plot = plots[kind_of(result) + ", " + result.mode];
    plot.first = product ? "n of n x n x n" : "batch";
    plot.second[setting_of(result, "precision")][record::number_member(result.config, "batch", 1)] = rate;
  }
  add_plots(page, "Sweeps of primitives", "FLOP/s", plots);
}

void add_batch_sweeps(page::Page& page, const std::vector<record::Result>& results) {
  std::map<std::string, std::pair<std::string, std::map<std::string, Points>>> plots;
  for (const record::Result& result : results) {
    if (is_baseline(result) || is_sweep(result) || result.command == "scale") continue;
    const double batch = record::number_member(result.config, "batch", 0);
    if (batch <= 0) continue;
    auto& plot = plots[result.workload + ", " + result.mode];
    plot.first = "batch";
    const std::string precision = setting_of(result, "precision");
    if (const record::Quantity* rate = result.find("throughput")) plot.second[precision][batch] = rate;
    if (const record::Quantity* rate = result.find("throughput_with_data"))
      plot.second[precision + " with the data pipeline"][batch] = rate;
  }
  add_plots(page, "Batch sweeps", "samples/s", plots);
}

void add_serving(page::Page& page, const std::vector<record::Result>& results) {
  const Rows rows = serving_rows(results);
  if (rows.empty()) return;
  page.heading("Serving under load");
  page.paragraph(
      "Single: the next request comes with the last answer. Offline: all at once. Poisson: at random "
      "moments. "
      "Latency runs from arrival to answer; percentiles are given where there were enough requests.");
  page.table({"workload", "precision", "batch", "load", "requests/s", "answers/s", "p50", "p90", "p99",
              "in queue", "busy", "notes"},
             rows);
}

void add_scaling(page::Page& page, const std::vector<record::Result>& results) {
  std::map<std::string, std::vector<const record::Result*>> studies;
  for (const record::Result& result : results)
    if (result.command == "scale" && result.find("throughput"))
      studies[result.workload + ", " + result.mode].push_back(&result);
  if (studies.empty()) return;
  Rows rows;
  page.heading("Scaling over ranks").begin_row();
  for (auto& [title, points] : studies) {
    std::ranges::sort(points, {}, [](const record::Result* result) { return result->units; });
    if (points.size() > 1) page.plot(scaling_plot(title, points));
    for (auto& row : scaling_rows(points)) rows.push_back(std::move(row));
  }
  page.table({"workload", "mode", "ranks", "batch", "throughput", "efficiency", "parallel share", "step",
              "exchange a step", "waiting a step"},
             rows);
  page.end_row();
}

void add_collectives(page::Page& page, const std::vector<record::Result>& results) {
  std::map<std::string, std::pair<std::string, std::map<std::string, Points>>> plots;
  for (const record::Result& result : results) {
    const double bytes = record::number_member(result.parameters, "bytes", 0);
    if (result.mode != "collective" || bytes <= 0) continue;
    auto& plot = plots[fmt::format("{}, {} ranks", result.workload, result.units)];
    plot.first = "bytes of a rank's buffer";
    if (const record::Quantity* rate = result.find("out_of_place_busbw"))
      plot.second["out of place"][bytes] = rate;
    if (const record::Quantity* rate = result.find("in_place_busbw")) plot.second["in place"][bytes] = rate;
  }
  add_plots(page, "Collectives", "bus bandwidth, B/s", plots);
}

// Between the 1st and the 99th percentile: a single outlier would squeeze all others into one bar. It is told
// in the table.
void add_histograms(page::Page& page, const std::vector<record::Result>& results) {
  constexpr int bins = 40;
  std::size_t shown = 0;
  for (const record::Result& result : results) {
    const record::Quantity* time = result.find("step_time");
    if (!time || is_baseline(result) || result.command == "scale" || shown == most_histograms ||
        time->samples.size() < fewest_for_histogram)
      continue;
    if (shown++ == 0) page.heading("Distribution of samples");
    const double scale = time->value < 1e-3 ? 1e6 : 1e3;
    std::vector<double> times;
    for (double sample : time->samples) times.push_back(scale * sample);
    std::ranges::sort(times);
    page::Plot plot{.title = result.id,
                    .x_label = scale == 1e6 ? "time of a call, us" : "time of a call, ms",
                    .y_label = "samples",
                    .series = {}};
    // Without the outermost hundredths, which would leave the rest in one bar.
    plot.series.push_back(page::histogram(fmt::format("{} samples", times.size()), times,
                                          nearest_rank(times, 0.01), nearest_rank(times, 0.99), bins));
    plot.vertical.push_back({scale * time->value, "median"});
    page.plot(plot);
  }
  if (shown == most_histograms)
    page.paragraph(fmt::format("The first {} are shown; the files and the records hold all samples of all.",
                               most_histograms));
}

}  // namespace superstep::lab
