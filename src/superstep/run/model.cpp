#include "superstep/run/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "superstep/base/text.h"
#include "superstep/file/form.h"
#include "superstep/file/weights/foreign_model.h"
#include "superstep/file/weights/weight_file.h"
#include "superstep/onnx/writer.h"
#include "superstep/op/core/definition.h"
#include "superstep/run/train/fold_task.h"
#include "superstep/run/train/schedule_text.h"
#include "superstep/target/pjrt/pjrt.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/training/sampled_dropout.h"

namespace superstep::run {
namespace {

bool is_data(const std::filesystem::path& path) {
  using enum data::FileForm;
  const data::FileForm form = data::form_of(path);
  return form == npy || form == npz || form == hdf5 || form == tiff;
}

// Files of data are a common slip where a model is asked for, and so is a run's folder.
void refuse_data(const std::string& name) {
  // A folder may have the name of the workload whose run or weights it holds.
  if (std::ranges::any_of(workload::workloads(), [&](const auto& known) { return known.name == name; }))
    return;
  const std::filesystem::path path = name;
  std::error_code none;
  const bool exists = std::filesystem::exists(path, none);
  if (!exists && (path.has_parent_path() || path.has_extension()))
    throw Error(ErrorCode::not_found, "there is no such file", name);
  if (exists) data::refuse_foreign_model(path);
  const auto ends = [&](std::initializer_list<const char*> endings) {
    return std::ranges::any_of(endings, [&](const char* ending) { return name.ends_with(ending); });
  };
  if (data::is_named_as_weights(name))
    throw Error(ErrorCode::invalid_argument, "these are weights without a model", name,
                fmt::format("name the model first: 'superstep infer WORKLOAD --weights {}'", name));
  if (ends({".h5", ".hdf5", ".npy", ".npz", ".csv", ".tif", ".tiff"}) || is_data(path))
    throw Error(
        ErrorCode::invalid_argument, "this is a file of data, not a model", name,
        fmt::format("name a workload or an .onnx file first: 'superstep infer WORKLOAD --weights run/ "
                    "--input {0}', 'superstep train WORKLOAD --data {0}'; 'superstep show {0}' looks into it",
                    name));
  if (std::filesystem::is_regular_file(std::filesystem::path(name) / "config.json"))
    throw Error(ErrorCode::invalid_argument, "this is the folder of a run, not a workload", name,
                fmt::format("'superstep infer WORKLOAD --weights {}' serves it", name));
  if (exists)
    throw Error(ErrorCode::invalid_argument, "this is neither a model nor the name of a workload", name,
                "models are .onnx and .pt2 files, or workloads by name: 'superstep list workloads'");
}

// Options that a workload of the zoo would not heed.
void refuse_options_of_files(const TrainSettings& s) {
  for (const auto& [given, option] : {std::pair(!s.shapes.empty(), "--shape"),
                                      {!s.keep.empty(), "--keep"},
                                      {!s.bounds.empty(), "--bound"},
                                      {!s.loss.empty(), "--loss"},
                                      {!s.metrics.empty(), "--metrics"},
                                      {!s.train.empty(), "--train"},
                                      {!s.freeze.empty(), "--freeze"},
                                      {!s.augmentation.empty(), "--augment"},
                                      {s.allow_nan, "--allow-nan"}})
    if (given)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("is of a model file (.onnx), and '{}' is a workload", s.workload), option,
                  fmt::format("leave {} away", option));
}

bool all_may_lack(const std::vector<data::Scaling>& scalings) {
  return std::ranges::none_of(scalings, &data::Scaling::required);
}

std::shared_ptr<const UserModel> open_user_model(const TrainSettings& settings) {
  if (!is_model_file(settings.workload)) {
    refuse_data(settings.workload);
    return nullptr;
  }
  return std::make_shared<const UserModel>(
      UserModelSettings{.file = settings.workload,
                        .shapes = settings.shapes,
                        .keep = settings.keep,
                        .bounds = settings.bounds,
                        .loss = settings.loss,
                        .metrics = settings.metrics,
                        .choice = {.train = settings.train, .freeze = settings.freeze},
                        .data = settings.data,
                        .validation = settings.validation,
                        .allow_not_finite = settings.allow_nan,
                        .skip_broken = settings.skip_broken,
                        .folds = settings.folds,
                        .crop = settings.crop,
                        .scalings = scalings_of(settings),
                        .augmentations = augmentations_from_text(settings.augmentation)});
}

// The recipe's rate for a batch.
double usual_rate(const workload::Recipe& recipe, std::int64_t batch) {
  if (recipe.rate_of_batch == 0) return recipe.learning_rate;
  return recipe.learning_rate * static_cast<double>(batch) / static_cast<double>(recipe.rate_of_batch);
}

// Graphs outlive the model they were asked of: what builds them holds a copy of all it needs.
graph::Graph build(const workload::Workload& workload, const TrainSettings& settings, std::int64_t batch) {
  return workload::build_model(workload, batch, settings.model_options, settings.seed);
}

// Of f16 alone: the other types have the range of f32.
transform::LossScale loss_scale_of(const TrainSettings& settings) {
  if (settings.precision != "f16" && !settings.loss_scale.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("is of f16, and this trains in {}", settings.precision),
                fmt::format("--loss-scale {}", settings.loss_scale), "add --precision f16, or leave it away");
  if (settings.precision != "f16") return {};
  return transform::loss_scale_from_text(settings.loss_scale.empty() ? "dynamic" : settings.loss_scale);
}

transform::Pass training_step_of(const workload::Recipe& recipe, const TrainSettings& settings) {
  return transform::training_step_pass(recipe.loss, recipe.optimizer,
                                       {.seed = settings.seed,
                                        .average = recipe.average,
                                        .joint_statistics = settings.batch_norm_span > 1,
                                        .loss_scale = loss_scale_of(settings),
                                        .gradient_norms = settings.gradient_norms,
                                        .gradient = transform::gradient_mode_from_text(settings.gradient)});
}

// What a metric must be that a schedule or a patience watches.
void require_monitor(const std::string& monitor, const workload::Workload& workload) {
  std::vector<std::string> known;
  for (const workload::MetricSpec& metric : workload.metrics) known.push_back(metric.name);
  if (monitor.empty() || std::ranges::find(known, monitor) != known.end()) return;
  throw Error(ErrorCode::invalid_argument, "there is no such metric to watch", "--monitor " + monitor,
              unknown_name_hint(monitor, known));
}

// The recipe as these settings, all filled in, have it.
workload::Recipe with_settings(workload::Recipe recipe, const TrainSettings& settings) {
  recipe.batch = settings.batch;
  recipe.epochs = settings.epochs;
  recipe.learning_rate = settings.learning_rate;
  recipe.rate_of_batch = 0;
  recipe.optimizer = transform::optimizer_from_text(settings.optimizer, recipe.optimizer);
  recipe.model_options = settings.model_options;
  require_sound(settings);
  const int give_up = recipe.schedule.give_up;
  if (!settings.schedule.empty()) {
    const std::string monitor = recipe.schedule.monitor;
    recipe.schedule = schedule_from_text(settings.schedule, settings.learning_rate);
    recipe.schedule.monitor = monitor;
    recipe.schedule.give_up = give_up;
  }
  if (settings.patience > 0) recipe.schedule.give_up = settings.patience;
  if (!settings.monitor.empty()) recipe.schedule.monitor = settings.monitor;
  if (settings.average > 0) recipe.average = settings.average;
  if (!settings.monitor.empty() && recipe.schedule.kind != workload::Schedule::Kind::plateau &&
      recipe.schedule.give_up == 0)
    throw Error(ErrorCode::invalid_argument, "nothing watches it", "--monitor " + settings.monitor,
                "it is of --patience and of --schedule plateau");
  return recipe;
}

void refuse_tokenizer(const TrainSettings& settings, bool takes_texts) {
  if (settings.tokenizer.empty() || takes_texts) return;
  std::vector<std::string> names;
  for (const workload::Workload& each : workload::workloads())
    if (each.takes_texts) names.push_back(each.name);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("makes tokens of texts, and '{}' takes none", settings.workload), "--tokenizer",
              fmt::format("it is of {}", join(names, ", ")));
}

}  // namespace

Model::Model(TrainSettings settings)
    : user_(open_user_model(settings)),
      workload_(user_ ? &user_->workload() : &workload::find_workload(settings.workload)),
      settings_(std::move(settings)) {
  if (user_ && !settings_.recipe.empty() && settings_.recipe != "quick")
    throw Error(ErrorCode::invalid_argument, "a model file has no recipe of its own", "--recipe",
                "give --optimizer, --learning-rate, --batch and --epochs");
  if (!user_) refuse_options_of_files(settings_);
  refuse_tokenizer(settings_, !user_ && workload_->takes_texts);
  const workload::Recipe& chosen = workload::find_recipe(*workload_, settings_.recipe);
  if (settings_.recipe.empty()) settings_.recipe = workload::name_of(workload_->by_default);
  settings_.model_options = workload::with_options_of(chosen, settings_.model_options);
  element_of_precision(settings_.precision);
  if (settings_.batch == 0) settings_.batch = chosen.batch;
  if (user_) user_->require_batch(settings_.batch);
  if (settings_.epochs == 0) settings_.epochs = chosen.epochs;
  if (settings_.learning_rate == 0) settings_.learning_rate = usual_rate(chosen, settings_.batch);
  if (settings_.optimizer.empty()) settings_.optimizer = transform::name_of(chosen.optimizer.kind);
  require_monitor(settings_.monitor, *workload_);
  recipe_ = with_settings(chosen, settings_);
  // In one spelling, so that a run goes on however it is asked for.
  settings_.gradient = transform::to_string(transform::gradient_mode_from_text(settings_.gradient));
  schedule_ = {.shape = recipe_.schedule, .peak = settings_.learning_rate};
  written_batch_ = fixed_batch();
}

TaskSettings task_settings_of(const TrainSettings& settings, ThreadPool& pool) {
  return {.data = settings.data,
          .validation = settings.validation,
          .samples = settings.samples,
          .seed = settings.seed,
          .model_options = settings.model_options,
          .pool = &pool,
          .skip_broken = settings.skip_broken,
          .crop = settings.crop,
          .scalings = scalings_of(settings),
          .tokenizer = settings.tokenizer,
          .folds = settings.folds,
          .fold = settings.fold};
}

std::unique_ptr<Task> Model::open_task(const TaskSettings& settings) const {
  if (settings.folds > 0) check_folds(settings);
  if (!user_)
    as_described()(
        1);  // options that it cannot be built with are refused before data are made or read for it
  if (!settings.scalings.empty() && settings.data.empty() && !all_may_lack(settings.scalings))
    throw Error(ErrorCode::invalid_argument, "is of data, and these are generated", "--scale, --offset",
                "give --data, or leave it away");
  std::unique_ptr<Task> task = user_ ? user_->open_task(settings) : run::open_task(*workload_, settings);
  if (!settings.scalings.empty() && !settings.data.empty() && !task->heeds_scalings())
    throw Error(
        ErrorCode::unsupported,
        fmt::format("data of '{}' are read by rules of their own, which scale nothing", workload_->name),
        "--scale, --offset", "scale the file itself: superstep convert IN OUT --scale NAME=X");
  return settings.folds > 0 ? folded(std::move(task), settings, settings_.augment) : std::move(task);
}

std::int64_t Model::fixed_batch() const { return user_ ? user_->fixed_batch() : 0; }

std::vector<std::string> Model::whole_outputs() const {
  return user_ ? user_->whole_outputs() : std::vector<std::string>();
}

std::vector<onnx::Initializer> Model::initializers() const {
  return user_ ? user_->initializers() : std::vector<onnx::Initializer>();
}

bool Model::one_a_call() const { return user_ && user_->one_a_call(); }
bool Model::numbers_samples() const { return user_ && user_->numbers_samples(); }

target::GraphAtBatch Model::as_described() const {
  return [settings = settings_, workload = *workload_](std::int64_t batch) {
    return build(workload, settings, batch);
  };
}

std::vector<transform::Pass> Model::passes(bool training, const target::Target* on) const {
  std::vector<transform::Pass> passes;
  const ElementType precision = element_of_precision(settings_.precision);
  transform::ProductsKept kept;
  if (on && precision == ElementType::bf16)
    kept = [on](const graph::Graph& model, const transform::AutocastOptions& options) {
      return on->slow_in_bf16(model, options);
    };
  // Devices behind a plug-in multiply f16; processors compute the same numbers in f32, which they are fast
  // at.
  const bool on_device = on && target::pjrt::find_device_target(on->name());
  if (training && precision == ElementType::f16 && !on_device)
    passes.push_back(transform::round_products_pass());
  else if (precision != ElementType::f32)
    passes.push_back(transform::autocast_pass(precision, training, std::move(kept)));
  if (training) passes.push_back(training_step_of(recipe(), settings_));
  return passes;
}

target::GraphAtBatch Model::graphs(const target::Target* on, std::vector<transform::Pass> passes) const {
  return [on, model = as_described(), passes = std::move(passes)](std::int64_t batch) {
    graph::Graph described = model(batch);
    if (on) described = on->suited(std::move(described));
    return transform::run_passes(std::move(described), passes);
  };
}

target::GraphAtBatch Model::training_step(const target::Target* on) const {
  return graphs(on, passes(true, on));
}

target::GraphAtBatch Model::gradient_step(const target::Target* on) const {
  if (settings_.precision == "f16")
    throw Error(ErrorCode::invalid_argument,
                "gradients below 6e-8 are zero in f16 where no loss scale goes with them", "precision",
                "take gradients in f32 or bf16, or train in f16 by a whole step");
  std::vector<transform::Pass> all = passes(true, on);
  all.back() = transform::gradient_step_pass(recipe().loss, {.seed = settings_.seed});
  return graphs(on, std::move(all));
}

target::GraphAtBatch Model::inference(const target::Target* on) const {
  return graphs(on, passes(false, on));
}

target::GraphAtBatch Model::sampling(const target::Target* on) const {
  std::vector<transform::Pass> all = passes(false, on);
  all.push_back(transform::sampled_dropout_pass(settings_.seed));
  return graphs(on, std::move(all));
}

graph::Graph Model::served_at(std::int64_t batch, const std::map<std::string, Tensor>& states) const {
  graph::Graph graph = build(*workload_, settings_, batch);
  for (graph::ValueId id : graph.states())
    if (const auto found = states.find(graph.value(id).name); found != states.end())
      graph.set_data(id, found->second);
  return graph;
}

void Model::settle_written_batch(std::int64_t batch) {
  if (!user_) return;  // files of the zoo leave it open
  const auto served = [&](std::int64_t size) { return served_at(size, {}); };
  if (fixed_batch() == 0) why_fixed_ = onnx::why_batch_is_fixed(served);
  if (!why_fixed_.empty()) written_batch_ = batch;
  if (written_batch_ > 0) onnx::require_writable(served, {.fixed_batch = written_batch_});
}

void Model::write_onnx(const std::filesystem::path& path, const std::map<std::string, Tensor>& states) const {
  onnx::write_onnx(path, [&](std::int64_t batch) { return served_at(batch, states); },
                   {.fixed_batch = written_batch_});
}

}  // namespace superstep::run
