#include "superstep/lab/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/report/quality_section.h"
#include "superstep/page/page.h"
#include "superstep/record/environment.h"
#include "superstep/record/member.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/serve/timing.h"
#include "superstep/run/task.h"
#include "superstep/run/train/run_directory.h"

namespace superstep::lab {
namespace {

using nlohmann::json;

constexpr std::int64_t largest_serving_batch = 512;  // chosen

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

// ---- serving ------------------------------------------------------------------------------------------

struct Serving {
  std::int64_t batch;
  int threads;
  std::vector<Metric> metrics;
};

Serving serve(const run::Model& model, const run::Weights& weights, std::int64_t batch, int threads,
              std::int64_t calls) {
  const target::Target& target = target::find_target(weights.settings.target);
  const auto executable = target.compile(model.inference(&target), {.batch = batch, .threads = threads});
  for (const std::string& name : executable->state_names())
    executable->set_state(name, weights.states.at(name));
  std::vector<Tensor> inputs;
  for (const auto& port : executable->inputs())
    inputs.push_back(Tensor::full(port.type.element, port.type.shape, 0.5));
  return {batch, threads, run::measure_serving(*executable, batch, inputs, calls)};
}

// One sample at a time on one thread, and the batch of the training on all: its model is no larger than that
// of the training step, which had room.
std::vector<Serving> serve_both(const run::Model& model, const run::Weights& weights,
                                const ReportSettings& settings) {
  if (const std::int64_t fixed = model.fixed_batch(); fixed > 0)
    return {serve(model, weights, fixed, settings.threads, settings.serving_calls)};
  const std::int64_t batch = std::min(largest_serving_batch, model.settings().batch);
  std::vector<Serving> servings{serve(model, weights, 1, 1, settings.serving_calls)};
  if (batch > 1)
    servings.push_back(serve(model, weights, batch, settings.threads,
                             std::max<std::int64_t>(3, settings.serving_calls / 10)));
  return servings;
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

// Errors that fall to a part of what they began with: on a linear axis what counts lies on its foot.
bool falls_far(const std::vector<double>& errors) {
  constexpr double far = 4;  // times: chosen
  if (errors.empty()) return false;
  const auto [low, high] = std::ranges::minmax(errors);
  return low > 0 && high > far * low;
}

// The metric that targets are set on, with what it is held against.
page::Plot quality_over_epochs(const std::vector<json>& log, const workload::MetricSpec& metric,
                               const std::optional<run::Quality>& quality) {
  page::Plot plot{.title = "Quality on the validation samples",
                  .x_label = "epoch",
                  .y_label = metric.name,
                  .series = {over_epochs(log, metric.name.c_str(), metric.name)}};
  plot.log_y = !metric.higher_is_better && falls_far(plot.series[0].y);
  if (!quality) return plot;
  if (quality->target) plot.horizontal.push_back({*quality->target, "target"});
  if (const auto& floor = quality->references.floor) plot.horizontal.push_back({floor->value, floor->method});
  if (const auto& method = quality->references.conventional)
    plot.horizontal.push_back({method->value, method->method});
  return plot;
}

void add_training(page::Page& page, const std::vector<json>& log, const run::Model& model,
                  const std::optional<run::Quality>& quality) {
  page.heading("Training");
  if (std::ranges::none_of(log, [](const json& line) { return line.contains("epoch"); })) {
    page.paragraph("No epoch was completed.");
    return;
  }
  page.begin_row();
  page.plot({.title = "Loss",
             .x_label = "epoch",
             .y_label = "mean loss of the epoch",
             .log_y = true,
             .series = {over_epochs(log, "loss", "training loss")}});
  if (const auto& metrics = model.workload().metrics; !metrics.empty())
    page.plot(quality_over_epochs(log, metrics.front(), quality));
  page.plot({.title = "Throughput",
             .x_label = "epoch",
             .y_label = "samples/s",
             .series = {over_epochs(log, "throughput", "training step alone")}});
  page.plot({.title = "Learning rate",
             .x_label = "epoch",
             .y_label = "learning rate at the end of the epoch",
             .series = {over_epochs(log, "learning_rate", "learning rate")}});
  page.end_row();
}

// "12 epochs, 7,200 steps, 1:05 min", with all calls that a run took.
std::string length_of(const std::vector<json>& log) {
  double epochs = 0, steps = 0, seconds = 0;
  for (const json& line : log) {
    epochs = std::max(epochs, record::number_member(line, "epoch", 0));
    steps = std::max(steps, record::number_member(line, "step", 0));
    seconds = std::max(seconds, record::number_member(line, "seconds", 0));
  }
  return fmt::format("{:g} epochs, {} steps, {}", epochs, format_count(steps), format_seconds(seconds));
}

// The date of the first call; a dash where a run kept none.
std::string begun(const std::filesystem::path& run) {
  const std::filesystem::path path = run / "environment.json";
  if (!std::filesystem::exists(path)) return "-";
  const json records = parse_json(read_text_file(path));
  return records.is_array() && !records.empty() ? record::text_member(records[0], "date", "-") : "-";
}

// The averages over 1, 5 and 15 minutes, or a dash where the system does not tell.
std::string load_text(const json& averages) {
  if (!averages.is_array() || averages.empty()) return "-";
  std::vector<std::string> texts;
  for (const json& average : averages) texts.push_back(fmt::format("{:.2f}", average.get<double>()));
  return fmt::format("{}", fmt::join(texts, ", "));
}

Rows setting_rows(const run::TrainSettings& s, const std::vector<json>& log, const std::string& date,
                  const json& environment) {
  const auto text = [](const json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  Rows rows{
      {"workload", s.workload},
      {"on", s.target},
      {"precision", s.precision},
      {"optimizer", s.optimizer},
      {"learning rate", fmt::format("{:g}{}", s.learning_rate, s.schedule.empty() ? "" : ", " + s.schedule)},
      {"batch", std::to_string(s.batch)},
      {"begun", date},
      {"trained for", length_of(log)},
      {"threads", std::to_string(s.replicas)},
      {"seed", std::to_string(s.seed)},
      {"data", s.data.empty() ? "generated" : s.data.filename().string()},
      {"processor", text(environment["host"]["processor"])},
      {"load when the report was made", load_text(environment["host"]["load_average"])},
      {"program", text(record::program_record()["version"]) + " " + text(record::program_record()["git"])}};
  return rows;
}

}  // namespace

Report make_report(const ReportSettings& settings) {
  const run::Weights weights = run::load_weights(settings.run);
  const std::vector<json> log = run::RunDirectory::open(settings.run).read_log();
  make_folder(settings.out);
  const run::Model model(weights.settings);
  ThreadPool pool(settings.threads);
  const json environment = record::environment_record(settings.threads);

  page::Page page(
      fmt::format("{}: a training run in {}", weights.settings.workload, weights.settings.precision));
  page.paragraph(model.workload().summary);
  const QualitySection section = add_quality(page, weights, model, settings.samples, settings.seed, pool);
  add_training(page, log, model, section.quality);
  const std::vector<Serving> servings = serve_both(model, weights, settings);
  const Rows serving = serving_rows(servings);
  page.heading("Serving").table(serving_header, serving);
  page.heading("How it was made");
  page.facts(setting_rows(model.settings(), log, begun(settings.run), environment));
  if (const auto path = settings.run / "run.toml"; !settings.for_others && std::filesystem::exists(path))
    page.paragraph("The file that repeats it, run.toml in its folder:").preformatted(read_text_file(path));

  Report report{.text = section.text + "\n" + as_text(serving_header, serving),
                .metrics = section.metrics,
                .quality = section.quality,
                .workload = weights.settings.workload,
                .page = settings.out / "index.html"};
  for (const Serving& each : servings)
    for (Metric metric : each.metrics) {
      metric.name += fmt::format("_batch_{}", each.batch);
      report.metrics.push_back(std::move(metric));
    }
  page.write(report.page);
  return report;
}

}  // namespace superstep::lab
