// The configuration of a training run, as it is kept in the run's folder.
#include "superstep/run/train/train_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/file/source/scaled_source.h"
#include "superstep/run/train/schedule_text.h"
#include "superstep/run/user/augmentation.h"
#include "superstep/run/user/metrics.h"
#include "superstep/run/user/user_model.h"
#include "superstep/target/pjrt/pjrt.h"
#include "superstep/transform/training/gradient_mode.h"
#include "superstep/transform/training/loss_text.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"

namespace superstep::run {

using nlohmann::json;

void require_devices(const TrainSettings& settings) {
  const bool several = settings.devices > 1 || settings.divide_parameters;
  if (several && !target::pjrt::find_device_target(settings.target))
    throw Error(ErrorCode::unsupported, "batches and parameters are divided among devices behind a plug-in",
                settings.target, "train on cuda, tpu, ...: superstep list devices");
  if (settings.divide_parameters && settings.devices == 1)
    throw Error(ErrorCode::invalid_argument, "there is one device to keep all parameters", settings.target,
                "give it several: --replicas");
}

json to_json(const TrainSettings& s) {
  json object{{"schema", "superstep-run/1"},
              {"workload", s.workload},
              {"backend", s.target},  // what targets were called when the format was published
              {"precision", s.precision},
              {"loss_scale", s.loss_scale},
              {"recipe", s.recipe},
              {"model_options", s.model_options},
              {"shapes", s.shapes},
              {"keep", s.keep},
              {"bounds", s.bounds},
              {"train", s.train},
              {"freeze", s.freeze},
              {"loss", s.loss},
              {"metrics", s.metrics},
              {"weights", s.weights.string()},
              {"data", s.data.string()},
              {"validation", s.validation.string()},
              {"allow_nan", s.allow_nan},
              {"skip_broken", s.skip_broken},
              {"crop", s.crop ? "center" : ""},
              {"scale", s.scale},
              {"offset", s.offset},
              {"augmentation", s.augmentation},
              {"tokenizer", s.tokenizer.string()},
              {"samples", s.samples},
              {"folds", s.folds},
              {"fold", s.fold},
              {"batch", s.batch},
              {"micro_batch", s.micro_batch},
              {"memory_limit", s.memory_limit},
              {"replicas", s.replicas},
              {"devices", s.devices},
              {"shard", s.divide_parameters ? "parameters" : ""},
              {"epochs", s.epochs},
              {"steps", s.steps},
              {"stop_after", s.stop_after},
              {"optimizer", s.optimizer},
              {"learning_rate", s.learning_rate},
              {"schedule", s.schedule},
              {"patience", s.patience},
              {"monitor", s.monitor},
              {"average", s.average},
              {"gradient", s.gradient},
              {"gradient_norms", s.gradient_norms},
              {"augment", s.augment},
              {"seed", s.seed},
              {"batch_norm_span", s.batch_norm_span}};
  object["until"] = s.until ? json{{"metric", s.until->metric}, {"value", s.until->value}} : json(nullptr);
  return object;
}

namespace {

// What is read, and how.
void read_data(const json& object, TrainSettings& s) {
  s.data = object.at("data").get<std::string>();
  s.validation = object.value("validation", "");                // absent from older files
  s.allow_nan = object.value("allow_nan", false);               // absent from older files
  s.skip_broken = object.value("skip_broken", false);           // absent from older files
  s.crop = object.value("crop", "") == "center";                // absent from older files
  s.scale = object.value("scale", std::vector<std::string>{});  // absent from older files, with the next two
  s.offset = object.value("offset", std::vector<std::string>{});
  s.augmentation = object.value("augmentation", std::vector<std::string>{});
  s.tokenizer = object.value("tokenizer", "");  // absent from older files
}

// What only a file can have wrong by now: of a call its parts have been understood where they were given.
void require_known_names(const TrainSettings& settings) {
  static_cast<void>(element_of_precision(settings.precision));
  static_cast<void>(transform::gradient_mode_from_text(settings.gradient));
  if (!settings.optimizer.empty()) static_cast<void>(transform::optimizer_from_text(settings.optimizer));
  static_cast<void>(transform::loss_from_text(settings.loss));
  static_cast<void>(metrics_from_text(settings.metrics));
  static_cast<void>(data::scalings_from_text(settings.scale, settings.offset));
  static_cast<void>(augmentations_from_text(settings.augmentation));
  if (is_model_file(settings.workload)) return;
  const workload::Workload& workload = workload::find_workload(settings.workload);
  static_cast<void>(workload::find_recipe(workload, settings.recipe));
}

}  // namespace

TrainSettings train_settings_from_json(const json& object) {
  TrainSettings s;
  try {
    s.workload = object.at("workload");
    s.target = object.at("backend");
    s.precision = object.at("precision");
    s.loss_scale = object.value("loss_scale", "");  // absent from older files
    s.recipe = object.value("recipe", "quick");     // absent from older files, when there was no other
    s.model_options = object.at("model_options").get<std::vector<std::string>>();
    s.shapes = object.value("shapes", std::vector<std::string>{});
    s.keep = object.value("keep", std::vector<std::string>{});      // absent from older files
    s.bounds = object.value("bounds", std::vector<std::string>{});  // absent from older files
    s.train = object.value("train", std::vector<std::string>{});    // absent from older files, with freeze
    s.freeze = object.value("freeze", std::vector<std::string>{});
    s.loss = object.value("loss", "");
    s.metrics = object.value("metrics", "");  // absent from older files
    s.weights = object.value("weights", "");  // absent from older files
    read_data(object, s);
    s.samples = object.at("samples");
    s.folds = object.value("folds", 0);  // absent from older files, with the one of them
    s.fold = object.value("fold", 0);
    s.batch = object.at("batch");
    s.micro_batch = object.at("micro_batch");
    s.memory_limit = object.value("memory_limit", std::int64_t{0});  // absent from older files
    s.replicas = object.at("replicas");
    s.devices = object.value("devices", 1);  // absent from older files, with what is divided
    s.divide_parameters = object.value("shard", "") == "parameters";
    s.epochs = object.at("epochs");
    s.steps = object.at("steps");
    s.stop_after = object.value("stop_after", 0.0);  // absent from older files
    s.optimizer = object.at("optimizer");
    s.learning_rate = object.at("learning_rate");
    s.schedule = object.value("schedule", "");  // absent from older files, with the three that follow
    s.patience = object.value("patience", 0);
    s.monitor = object.value("monitor", "");
    s.average = object.value("average", 0.0);
    s.gradient = object.value("gradient", "reverse");          // absent from older files
    s.gradient_norms = object.value("gradient_norms", false);  // absent from older files
    s.augment = object.at("augment");
    s.seed = object.at("seed");
    s.batch_norm_span = object.value("batch_norm_span", 1);  // absent from older files
    if (const json& until = object.at("until"); !until.is_null())
      s.until = Until{until.at("metric").get<std::string>(), until.at("value").get<double>()};
    require_sound(s);
    require_known_names(s);
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, fmt::format("is not the configuration of a run: {}", error.what()),
                "config.json");
  } catch (const Error& error) {  // of a value: no option was given
    throw Error(ErrorCode::bad_file,
                fmt::format("is not the configuration of a run: {}: {}", error.where(), error.message()),
                "config.json");
  }
  return s;
}

std::vector<data::Scaling> scalings_of(const TrainSettings& settings) {
  std::vector<data::Scaling> scalings = data::scalings_from_text(settings.scale, settings.offset);
  for (data::Scaling& each : scalings)
    each.required = std::ranges::find(settings.may_lack, each.array) == settings.may_lack.end();
  return scalings;
}

void scale_other_data(TrainSettings& of_run, std::vector<std::string> scale,
                      std::vector<std::string> offset) {
  const std::vector<data::Scaling> now = data::scalings_from_text(scale, offset);
  const auto is_said_now = [&](const std::string& text) {
    return std::ranges::find(now, text.substr(0, text.rfind('=')), &data::Scaling::array) != now.end();
  };
  std::erase_if(of_run.scale, is_said_now);
  std::erase_if(of_run.offset, is_said_now);
  for (const data::Scaling& kept : data::scalings_from_text(of_run.scale, of_run.offset))
    of_run.may_lack.push_back(kept.array);
  of_run.scale.insert(of_run.scale.end(), scale.begin(), scale.end());
  of_run.offset.insert(of_run.offset.end(), offset.begin(), offset.end());
}

ElementType element_of_precision(const std::string& name) {
  const std::vector<std::string> known{"f32", "bf16", "f16"};
  if (name == "f32") return ElementType::f32;
  if (name == "bf16") return ElementType::bf16;
  if (name == "f16") return ElementType::f16;
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no precision '{}'", name), "--precision",
              unknown_name_hint(name, known));
}

void require_sound(const TrainSettings& settings) {
  if (!(settings.average >= 0 && settings.average < 1))
    throw Error(ErrorCode::invalid_argument,
                "must be above 0 and below 1: averages that forget nothing never learn",
                fmt::format("--ema {:g}", settings.average));
  if (!settings.loss_scale.empty()) static_cast<void>(transform::loss_scale_from_text(settings.loss_scale));
  if (settings.patience < 0)
    throw Error(ErrorCode::invalid_argument, "must be 1 or more",
                fmt::format("--patience {}", settings.patience));
  if (!settings.schedule.empty()) static_cast<void>(schedule_from_text(settings.schedule, 1));
}

}  // namespace superstep::run
