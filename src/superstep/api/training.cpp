// Whole training runs, and what there is to choose from.
#include <algorithm>

#include "superstep/api/compiled.h"
#include "superstep/base/progress.h"
#include "superstep/op/custom/operator_library.h"
#include "superstep/run/train/run_directory.h"
#include "superstep/run/train/train.h"
#include "superstep/run/train/train_observer.h"
#include "superstep/run/train/train_resume.h"
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
  settings.validation = given.validation;
  settings.recipe = given.recipe;
  settings.train = given.settings.train;
  settings.freeze = given.settings.freeze;
  settings.augment = given.augment;
  settings.crop = given.crop;
  settings.scale = given.scale;
  settings.offset = given.offset;
  settings.augmentation = given.augmentation;
  settings.skip_broken = given.skip_broken;
  settings.samples = given.samples;
  settings.batch = given.batch;
  settings.micro_batch = given.micro_batch;
  settings.replicas = api::threads_of(given.threads);
  settings.devices = std::max(1, given.devices);
  settings.divide_parameters = given.divide_parameters;
  run::require_devices(settings);
  settings.memory_limit = static_cast<std::int64_t>(given.memory_limit);
  settings.epochs = given.epochs;
  settings.steps = given.steps;
  settings.optimizer = given.training.optimizer;
  settings.learning_rate = given.training.learning_rate;
  settings.schedule = given.schedule;
  settings.patience = given.patience;
  settings.monitor = given.monitor;
  settings.metrics = given.metrics;
  settings.loss_scale = given.loss_scale;
  settings.average = given.average;
  settings.gradient_norms = given.gradient_norms;
  settings.seed = given.settings.seed;
  if (!given.until_metric.empty()) settings.until = run::Until{given.until_metric, given.until_value};
  return settings;
}

// The run in `out` as it was begun, but for what it may be told anew.
run::TrainSettings resumed(const TrainingSettings& given) {
  const run::TrainSettings asked = settings_of(given);
  const run::TrainSettings kept = run::train_settings_from_json(run::RunDirectory::open(given.out).config());
  if (!given.model.empty() && given.model != kept.workload)
    throw Error(ErrorCode::invalid_argument,
                "is a run of '" + kept.workload + "', not of '" + given.model + "'", given.out.string());
  run::Extension extension{.epochs = {}, .steps = {}, .until = asked.until, .replicas = {}, .devices = {}};
  if (given.epochs > 0) extension.epochs = given.epochs;
  if (given.steps > 0) extension.steps = given.steps;
  if (given.threads > 0) extension.replicas = asked.replicas;
  if (given.devices > 0) extension.devices = asked.devices;
  run::TrainSettings further = run::extended(kept, extension);
  run::require_devices(further);
  return further;
}

std::vector<TrainingMetric> public_metrics(const std::vector<Metric>& metrics) {
  std::vector<TrainingMetric> result;
  for (const Metric& metric : metrics) result.push_back({metric.name, metric.unit, metric.value});
  return result;
}

class Teller : public run::TrainObserver {
 public:
  explicit Teller(const std::function<void(const TrainingEvent&)>& told) : told_(told) {}

  void epoch_begun(std::int64_t epoch) override {
    told_({.kind = Kind::epoch_begun, .epoch = epoch, .metrics = {}});
  }
  void epoch_ended(std::int64_t epoch, double rate) override {
    told_({.kind = Kind::epoch_ended, .epoch = epoch, .samples_per_second = rate, .metrics = {}});
  }
  void evaluation_ended(std::int64_t epoch, const std::vector<Metric>& metrics) override {
    told_({.kind = Kind::evaluated, .epoch = epoch, .metrics = public_metrics(metrics)});
  }
  void finished() override { told_({.kind = Kind::finished, .metrics = {}}); }

 private:
  using Kind = TrainingEvent::Kind;
  const std::function<void(const TrainingEvent&)>& told_;
};

}  // namespace

const char* name_of(TrainingEvent::Kind kind) {
  switch (kind) {
    case TrainingEvent::Kind::epoch_begun: return "epoch_begun";
    case TrainingEvent::Kind::epoch_ended: return "epoch_ended";
    case TrainingEvent::Kind::evaluated: return "evaluated";
    case TrainingEvent::Kind::finished: return "finished";
  }
  return "";
}

std::string version() { return SUPERSTEP_VERSION; }

void load_operators(const std::filesystem::path& library) { op::load_operators(library); }

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
  Teller teller(settings.on_event);
  const run::TrainReport report = run::train(settings.resume ? resumed(settings) : settings_of(settings),
                                             {.out = settings.out,
                                              .resume = settings.resume,
                                              .checkpoint_seconds = settings.checkpoint_seconds,
                                              .observer = settings.on_event ? &teller : nullptr,
                                              .data_memory = static_cast<double>(settings.data_memory)});
  TrainingReport result{.metrics = public_metrics(report.metrics),
                        .steps = report.steps,
                        .epochs = report.epochs,
                        .reached = report.reached};
  return result;
}

}  // namespace superstep
