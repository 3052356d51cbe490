#include "superstep/lab/report/quality_section.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/run/references.h"
#include "superstep/run/serve/evaluate.h"
#include "superstep/run/task.h"

namespace superstep::lab {
namespace {

using Clock = std::chrono::steady_clock;
using Rows = std::vector<std::vector<std::string>>;

constexpr std::int64_t evaluation_batch = 256;  // as in training (run/train/validation.cpp)

// The samples that the model is judged on.
struct Samples {
  std::unique_ptr<run::Task> task;
  std::vector<std::int64_t> indices;
  std::string words;
};

std::vector<std::int64_t> range(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(std::max<std::int64_t>(0, last - first)));
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

std::string counted(std::size_t count) { return format_count(static_cast<double>(count)); }

Samples open_samples(const run::TrainSettings& settings, const run::Model& model, std::int64_t most,
                     std::uint64_t seed, ThreadPool& pool) {
  run::TaskSettings of_run = task_settings_of(settings, pool);
  of_run.labels_required = false;
  Samples samples{model.open_task(of_run), {}, {}};
  if (auto fresh = samples.task->fresh(most, seed, pool)) {
    samples.task = std::move(fresh);
    samples.indices = range(0, samples.task->size());
    samples.words =
        fmt::format("{} freshly generated samples that no training saw", counted(samples.indices.size()));
    return samples;
  }
  const std::int64_t first = samples.task->training_count();
  samples.indices = range(first, std::min(samples.task->size(), first + most));
  samples.words =
      fmt::format("{} validation samples, which no step trained on", counted(samples.indices.size()));
  return samples;
}

struct Found {
  std::vector<Tensor> outputs, spread;  // the latter of a model that is asked by many passes
  double seconds = 0;
};

Found predict(const Samples& samples, const run::Weights& weights, const run::Model& model,
              ThreadPool& pool) {
  const target::Target& target = target::find_target(weights.settings.target);
  const std::int64_t fixed = model.fixed_batch();
  const auto count = static_cast<std::int64_t>(samples.indices.size());
  const int passes = model.recipe().passes;
  run::Evaluator evaluator(target, passes > 0 ? model.sampling(&target) : model.inference(&target),
                           {.batch = fixed > 0 ? fixed : std::min(evaluation_batch, count),
                            .micro_batch = fixed,
                            .threads = pool.threads()},
                           fixed > 0 || !model.whole_outputs().empty(), model.whole_outputs());
  evaluator.set_parameters(weights.states, weights.where);
  evaluator.executable();  // compiled before the clock starts
  const auto begun = Clock::now();
  Found found;
  if (passes > 0) {
    auto sampled = evaluator.sample(*samples.task, samples.indices, pool, passes);
    found.outputs = std::move(sampled.mean), found.spread = std::move(sampled.spread);
  } else {
    found.outputs = evaluator.predict(*samples.task, samples.indices, pool);
  }
  found.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  return found;
}

// ---- the verdict --------------------------------------------------------------------------------------

Rows verdict_rows(const run::Quality& quality, const std::string& model) {
  const auto number = [&](double value) { return metric_text(value, quality.unit); };
  Rows rows{{model, number(quality.reached)}};
  if (quality.target)
    rows.push_back({fmt::format("target, {}", quality.higher_is_better ? "at least" : "at most"),
                    number(*quality.target)});
  for (const auto& [what, reference] : {std::pair("floor", &quality.references.floor),
                                        std::pair("conventional method", &quality.references.conventional),
                                        std::pair("limit", &quality.references.limit)})
    if (*reference)
      rows.push_back({fmt::format("{}: {}", what, (*reference)->method), number((*reference)->value)});
  return rows;
}

void add_verdict(page::Page& page, const run::Quality& quality, const std::string& model,
                 const std::vector<Metric>& metrics) {
  const std::size_t own = 0;
  page.raw("<p class=\"verdict\">" + page::escape(run::verdict(quality)) + "</p>\n");
  page.begin_row();
  page.table({fmt::format("on the same {} samples", counted(static_cast<std::size_t>(quality.samples))),
              quality.metric},
             verdict_rows(quality, model), {&own, 1});
  if (metrics.size() > 1) {
    Rows rows;
    for (const Metric& metric : metrics)
      rows.push_back({metric.name, metric_text(metric.value, metric.unit)});
    page.table({"all metrics", "value"}, rows);
  }
  page.end_row();
}

std::string as_text(const run::Quality& quality, const std::string& model) {
  TextTable table({"", quality.metric});
  for (const auto& row : verdict_rows(quality, model)) table.add_row(row);
  return table.to_string() + run::verdict(quality) + "\n";
}

}  // namespace

std::string metric_text(double value, const std::string& unit) {
  return fmt::format("{:.4g}{}{}", value, unit.empty() ? "" : " ", unit);
}

QualitySection add_quality(page::Page& page, const run::Weights& weights, const run::Model& model,
                           std::int64_t most, std::uint64_t seed, ThreadPool& pool) {
  QualitySection section;
  page.heading("Quality");
  const auto without = [&](const std::string& why) {
    page.paragraph(why);
    section.text = why + "\n";
    return section;
  };
  Samples samples;
  try {
    samples = open_samples(weights.settings, model, most, seed, pool);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found && error.code() != ErrorCode::bad_file) throw;
    return without(
        fmt::format("The data of the run cannot be read, so nothing was measured: {}", error.what()));
  }
  if (samples.indices.empty()) return without("The run kept no samples to validate on.");
  const std::string name = fmt::format("{}, {}", weights.settings.workload, weights.settings.precision);
  if (samples.task->has_labels()) {
    const Found found = predict(samples, weights, model, pool);
    section.samples = samples.words;
    section.metrics = samples.task->quality(samples.indices, found.outputs);
    if (!found.spread.empty())
      for (Metric& worth : samples.task->spread_quality(samples.indices, found.outputs, found.spread))
        section.metrics.push_back(std::move(worth));
    page.paragraph(fmt::format("Measured on {}.", samples.words));
    if (!section.metrics.empty()) {
      section.quality = run::judge(
          model.workload(), section.metrics.front(), static_cast<std::int64_t>(samples.indices.size()),
          run::KnownReferences().get(*samples.task, model.workload(), samples.indices, pool));
      add_verdict(page, *section.quality, name, section.metrics);
      section.text = as_text(*section.quality, name);
    }
    const std::string more = samples.task->present(
        {name, samples.indices, found.outputs, found.seconds, found.spread}, pool, page);
    if (!more.empty()) section.text += "\n" + more;
    return section;
  }
  return without("The data have no true values: there is no quality to measure, only speed.");
}

}  // namespace superstep::lab
