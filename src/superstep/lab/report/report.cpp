#include "superstep/lab/report/report.h"

#include <fmt/format.h>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/report/bragg_comparison.h"
#include "superstep/page/page.h"
#include "superstep/run/environment.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/task.h"
#include "superstep/run/train/run_directory.h"

namespace superstep::lab {
namespace {

using nlohmann::json;

constexpr double histogram_end_px = 0.25;
constexpr int histogram_bins = 50;
constexpr std::int64_t serving_calls = 1000;

using Rows = std::vector<std::vector<std::string>>;

const Metric* find(const std::vector<Metric>& metrics, std::string_view name) {
  for (const Metric& metric : metrics)
    if (metric.name == name) return &metric;
  return nullptr;
}

std::string as_text(const std::vector<std::string>& header, const Rows& rows) {
  TextTable table(header);
  for (const auto& row : rows) table.add_row(row);
  return table.to_string();
}

// ---- quality ------------------------------------------------------------------------------------------

const std::vector<std::string> quality_header{"method", "mean px", "p50", "p75", "p95", "p99.5", "patches/s"};

Rows quality_rows(const BraggComparison& comparison) {
  Rows rows;
  for (const BraggMethodResult& method : comparison.methods) {
    std::vector<std::string> row{method.name};
    for (const Metric& metric : method.metrics) row.push_back(fmt::format("{:.4f}", metric.value));
    row.push_back(format_count(static_cast<double>(comparison.samples) / method.seconds));
    rows.push_back(std::move(row));
  }
  return rows;
}

page::Plot error_distribution(const BraggComparison& comparison) {
  page::Plot plot{
      .title = "Distance from the true centre", .x_label = "error, px", .y_label = "patches", .series = {}};
  for (std::size_t i = 1; i < comparison.methods.size(); ++i) {
    if (i == 2) continue;  // the two fits lie on each other
    const BraggMethodResult& method = comparison.methods[i];
    auto series = page::histogram(method.name, method.errors, 0, histogram_end_px, histogram_bins);
    series.style = page::Series::Style::steps;
    plot.series.push_back(std::move(series));
  }
  return plot;
}

// ---- serving ------------------------------------------------------------------------------------------

struct Serving {
  std::int64_t batch;
  int threads;
  std::vector<Metric> metrics;
};

Serving serve(const run::Model& model, const run::Weights& weights, std::int64_t batch, int threads) {
  const target::Target& target = target::find_target(weights.settings.backend);
  const auto executable = target.compile(model.inference(&target), {.batch = batch, .threads = threads});
  for (const std::string& name : executable->state_names())
    executable->set_state(name, weights.states.at(name));
  std::vector<Tensor> inputs;
  for (const auto& port : executable->inputs())
    inputs.push_back(Tensor::full(port.type.element, port.type.shape, 0.5));
  return {batch, threads, run::measure_serving(*executable, batch, inputs, batch == 1 ? serving_calls : 100)};
}

const std::vector<std::string> serving_header{"batch", "threads", "latency p50", "p90", "p99", "samples/s"};

Rows serving_rows(const std::vector<Serving>& servings) {
  Rows rows;
  for (const Serving& serving : servings) {
    const auto cell = [&](const char* name) {
      const Metric* metric = find(serving.metrics, name);
      return metric ? format_seconds(metric->value) : std::string("-");
    };
    rows.push_back({std::to_string(serving.batch), std::to_string(serving.threads), cell("latency_p50"),
                    cell("latency_p90"), cell("latency_p99"),
                    format_count(find(serving.metrics, "throughput")->value)});
  }
  return rows;
}

// ---- training -----------------------------------------------------------------------------------------

page::Series over_epochs(const std::vector<json>& log, const char* name, const std::string& label) {
  page::Series series{.label = label, .x = {}, .y = {}};
  for (const json& line : log) {
    if (!line.contains("epoch") || !line.contains(name) || !line[name].is_number()) continue;
    series.x.push_back(line["epoch"].get<double>());
    series.y.push_back(line[name].get<double>());
  }
  return series;
}

void add_training(page::Page& page, const std::vector<json>& log, const run::Model& model) {
  page.heading("Training");
  page.plot({.title = "Loss",
             .x_label = "epoch",
             .y_label = "mean loss of the epoch",
             .log_y = true,
             .series = {over_epochs(log, "loss", "training loss")}});
  if (const auto& target = model.workload().target) {
    page::Plot quality{.title = "Quality on the validation samples",
                       .x_label = "epoch",
                       .y_label = target->metric,
                       .series = {over_epochs(log, target->metric.c_str(), target->metric)}};
    quality.horizontal.push_back({target->value, "target"});
    page.plot(quality);
  }
  page.plot({.title = "Throughput",
             .x_label = "epoch",
             .y_label = "samples/s",
             .series = {over_epochs(log, "throughput", "training step alone")}});
}

// The averages over 1, 5 and 15 minutes, or a dash where the system does not tell.
std::string load_text(const json& averages) {
  if (!averages.is_array() || averages.empty()) return "-";
  std::vector<std::string> texts;
  for (const json& average : averages) texts.push_back(fmt::format("{:.2f}", average.get<double>()));
  return fmt::format("{}", fmt::join(texts, ", "));
}

Rows setting_rows(const run::Weights& weights, const json& environment) {
  const run::TrainSettings& s = weights.settings;
  const auto text = [](const json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  Rows rows{{"workload", s.workload},
            {"backend", s.backend},
            {"precision", s.precision},
            {"batch", s.batch ? std::to_string(s.batch) : "the workload's own"},
            {"threads", std::to_string(s.replicas)},
            {"seed", std::to_string(s.seed)},
            {"data", s.data.empty() ? "generated" : s.data.filename().string()},
            {"processor", text(environment["host"]["processor"])},
            {"load when the report was made", load_text(environment["host"]["load_average"])},
            {"program", text(run::program_record()["version"]) + " " + text(run::program_record()["git"])}};
  return rows;
}

Report report_bragg(const ReportSettings& settings, const run::Weights& weights,
                    const std::vector<json>& log) {
  ThreadPool pool(settings.threads);
  const run::Model model(weights.settings);
  const BraggComparison comparison = compare_bragg(weights, settings.samples, settings.seed, pool);
  const std::vector<Serving> servings{serve(model, weights, 1, 1),
                                      serve(model, weights, 512, settings.threads)};
  const json environment = run::environment_record(settings.threads);
  const Rows quality = quality_rows(comparison), serving = serving_rows(servings);

  page::Page page("BraggNN: diffraction peaks to sub-pixel centres");
  page.paragraph(
      fmt::format("Measured on this machine, {}, on {} freshly generated patches that no training saw.",
                  run::iso_time(), format_count(static_cast<double>(comparison.samples))));
  page.heading("Quality").table(quality_header, quality);
  page.paragraph(
      "Distances between true and found centres, in pixels. The fits are least squares by Levenberg and "
      "Marquardt of a pseudo-Voigt peak with 7 (axis-aligned) and 8 (rotated) parameters. Rates are on all "
      "threads, data included.");
  page.plot(error_distribution(comparison));
  page.heading("Patches").pictures(comparison.pictures);
  page.heading("Serving").table(serving_header, serving);
  add_training(page, log, model);
  page.heading("How it was made").table({"setting", "value"}, setting_rows(weights, environment));

  Report report{.text = as_text(quality_header, quality) + "\n" + as_text(serving_header, serving),
                .metrics = comparison.methods.back().metrics,
                .workload = weights.settings.workload,
                .page = {}};
  for (const Serving& each : servings)
    for (Metric metric : each.metrics) {
      metric.name += fmt::format("_batch_{}", each.batch);
      report.metrics.push_back(std::move(metric));
    }
  report.page = settings.out / "index.html";
  page.write(report.page);
  return report;
}

Report report_any(const ReportSettings& settings, const run::Weights& weights, const std::vector<json>& log) {
  const run::Model model(weights.settings);
  const std::vector<Serving> servings{serve(model, weights, 1, 1),
                                      serve(model, weights, 512, settings.threads)};
  const Rows serving = serving_rows(servings);
  page::Page page(weights.settings.workload + ": a training run");
  add_training(page, log, model);
  page.heading("Serving").table(serving_header, serving);
  page.heading("How it was made")
      .table({"setting", "value"}, setting_rows(weights, run::environment_record(settings.threads)));
  Report report{.text = as_text(serving_header, serving),
                .metrics = servings.back().metrics,
                .workload = weights.settings.workload,
                .page = settings.out / "index.html"};
  page.write(report.page);
  return report;
}

}  // namespace

Report make_report(const ReportSettings& settings) {
  const run::Weights weights = run::load_weights(settings.run);
  const std::vector<json> log = run::RunDirectory::open(settings.run).read_log();
  make_folder(settings.out);
  return weights.settings.workload == "braggnn" ? report_bragg(settings, weights, log)
                                                : report_any(settings, weights, log);
}

}  // namespace superstep::lab
