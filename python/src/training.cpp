// Whole training runs.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/watch.h"

namespace superstep::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
T field(nb::dict given, const char* name) {
  return nb::cast<T>(given[name]);
}

ModelSettings model_settings(nb::dict given) {
  return {.options = field<std::vector<std::string>>(given, "options"),
          .shapes = field<std::vector<std::string>>(given, "shapes"),
          .train = field<std::vector<std::string>>(given, "train"),
          .freeze = field<std::vector<std::string>>(given, "freeze"),
          .loss = field<std::string>(given, "loss"),
          .seed = field<std::uint64_t>(given, "seed")};
}

TrainingSettings settings_of(nb::dict given) {
  TrainingSettings settings;
  settings.model = field<std::string>(given, "model");
  settings.settings = model_settings(given);
  settings.data = field<std::string>(given, "data");
  settings.target = field<std::string>(given, "target");
  settings.precision = field<std::string>(given, "precision");
  settings.samples = field<std::int64_t>(given, "samples");
  settings.batch = field<std::int64_t>(given, "batch");
  settings.micro_batch = field<std::int64_t>(given, "micro_batch");
  settings.threads = field<int>(given, "threads");
  settings.memory_limit = field<std::size_t>(given, "memory_limit");
  settings.epochs = field<double>(given, "epochs");
  settings.steps = field<std::int64_t>(given, "steps");
  settings.recipe = field<std::string>(given, "recipe");
  settings.schedule = field<std::string>(given, "schedule");
  settings.patience = field<int>(given, "patience");
  settings.monitor = field<std::string>(given, "monitor");
  settings.average = field<double>(given, "average");
  settings.augment = field<bool>(given, "augment");
  settings.training = {.optimizer = field<std::string>(given, "optimizer"),
                       .learning_rate = field<double>(given, "learning_rate")};
  settings.until_metric = field<std::string>(given, "until_metric");
  settings.until_value = field<double>(given, "until_value");
  settings.out = field<std::string>(given, "out");
  settings.resume = field<bool>(given, "resume");
  settings.checkpoint_seconds = field<double>(given, "checkpoint_seconds");
  return settings;
}

nb::list metrics_of(const std::vector<TrainingMetric>& metrics) {
  nb::list list;
  for (const TrainingMetric& metric : metrics)
    list.append(nb::make_tuple(metric.name, metric.unit, metric.value));
  return list;
}

// `told`: called with (kind, epoch, samples a second, metrics), or None.
nb::tuple train(nb::dict given, nb::object told, nb::object progress) {
  TrainingSettings settings = settings_of(given);
  Watch watch(std::move(progress));
  if (!told.is_none())
    settings.on_event = [&](const TrainingEvent& event) {
      watch.call_back([&] {
        told(name_of(event.kind), event.epoch, event.samples_per_second, metrics_of(event.metrics));
      });
    };
  const TrainingReport report = watch.call([&] { return superstep::train(settings); });
  return nb::make_tuple(metrics_of(report.metrics), report.steps, report.epochs, report.reached);
}

}  // namespace

void bind_training(nb::module_& module) {
  module.def("train", train, "settings"_a, "told"_a.none(), "progress"_a.none());
}

}  // namespace superstep::python
