// Whole training runs, and what there is to choose from.
#include "superstep/api/compiled.h"
#include "superstep/base/progress.h"
#include "superstep/run/train/train.h"
#include "superstep/superstep.h"
#include "superstep/workload/workload.h"

namespace superstep {
namespace {

run::TrainSettings settings_of(const TrainingSettings& given) {
  run::TrainSettings settings{.workload = given.model,
                              .target = given.target,
                              .precision = given.precision,
                              .model_options = given.settings.options,
                              .shapes = given.settings.shapes,
                              .loss = given.settings.loss,
                              .data = given.data};
  settings.samples = given.samples;
  settings.batch = given.batch;
  settings.replicas = api::threads_of(given.threads);
  settings.memory_limit = static_cast<std::int64_t>(given.memory_limit);
  settings.epochs = given.epochs;
  settings.steps = given.steps;
  settings.optimizer = given.training.optimizer;
  settings.learning_rate = given.training.learning_rate;
  settings.seed = given.settings.seed;
  if (!given.until_metric.empty()) settings.until = run::Until{given.until_metric, given.until_value};
  return settings;
}

}  // namespace

std::string version() { return SUPERSTEP_VERSION; }

std::vector<std::string> zoo() {
  std::vector<std::string> names;
  for (const workload::Workload& entry : workload::workloads()) names.push_back(entry.name);
  return names;
}

std::vector<std::string> targets() {
  std::vector<std::string> names;
  for (const target::Target* target : target::targets()) names.emplace_back(target->name());
  return names;
}

TrainingReport train(const TrainingSettings& settings) {
  set_quiet(true);  // of this library's own copy: a program's bars are its own
  const run::TrainReport report =
      run::train(settings_of(settings), {.out = settings.out, .resume = settings.resume});
  TrainingReport result{
      .metrics = {}, .steps = report.steps, .epochs = report.epochs, .reached = report.reached};
  for (const Metric& metric : report.metrics)
    result.metrics.push_back({metric.name, metric.unit, metric.value});
  return result;
}

}  // namespace superstep
