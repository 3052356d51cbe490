// Whole training runs.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/setting.h"
#include "python/src/watch.h"

namespace superstep::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

ModelSettings model_settings(nb::dict given) {
  return {.options = setting<std::vector<std::string>>(given, "options"),
          .shapes = setting<std::vector<std::string>>(given, "shapes"),
          .train = setting<std::vector<std::string>>(given, "train"),
          .freeze = setting<std::vector<std::string>>(given, "freeze"),
          .loss = setting<std::string>(given, "loss"),
          .seed = setting<std::uint64_t>(given, "seed")};
}

TrainingSettings settings_of(nb::dict given) {
  TrainingSettings settings;
  settings.model = setting<std::string>(given, "model");
  settings.settings = model_settings(given);
  settings.data = setting<std::string>(given, "data");
  settings.validation = setting<std::string>(given, "validation");
  settings.target = setting<std::string>(given, "target");
  settings.precision = setting<std::string>(given, "precision");
  settings.samples = setting<std::int64_t>(given, "samples");
  settings.batch = setting<std::int64_t>(given, "batch");
  settings.micro_batch = setting<std::int64_t>(given, "micro_batch");
  settings.threads = setting<int>(given, "threads");
  settings.memory_limit = setting<std::size_t>(given, "memory_limit");
  settings.epochs = setting<double>(given, "epochs");
  settings.steps = setting<std::int64_t>(given, "steps");
  settings.recipe = setting<std::string>(given, "recipe");
  settings.schedule = setting<std::string>(given, "schedule");
  settings.patience = setting<int>(given, "patience");
  settings.monitor = setting<std::string>(given, "monitor");
  settings.metrics = setting<std::string>(given, "metrics");
  settings.loss_scale = setting<std::string>(given, "loss_scale");
  settings.gradient_norms = setting<bool>(given, "gradient_norms");
  settings.average = setting<double>(given, "average");
  settings.augment = setting<bool>(given, "augment");
  settings.crop = setting<bool>(given, "crop");
  settings.scale = setting<std::vector<std::string>>(given, "scale");
  settings.offset = setting<std::vector<std::string>>(given, "offset");
  settings.augmentation = setting<std::vector<std::string>>(given, "augmentation");
  settings.skip_broken = setting<bool>(given, "skip_broken");
  settings.data_memory = setting<std::size_t>(given, "data_memory");
  settings.training = {.optimizer = setting<std::string>(given, "optimizer"),
                       .learning_rate = setting<double>(given, "learning_rate")};
  settings.until_metric = setting<std::string>(given, "until_metric");
  settings.until_value = setting<double>(given, "until_value");
  settings.out = setting<std::string>(given, "out");
  settings.resume = setting<bool>(given, "resume");
  settings.checkpoint_seconds = setting<double>(given, "checkpoint_seconds");
  settings.devices = setting<int>(given, "devices");
  settings.divide_parameters = setting<bool>(given, "divide_parameters");
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
