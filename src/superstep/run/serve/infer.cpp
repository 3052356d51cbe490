#include "superstep/run/serve/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "superstep/base/measured_metric.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/file/source/paths.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/evaluate.h"
#include "superstep/run/serve/length_plans.h"
#include "superstep/run/serve/published_weights.h"
#include "superstep/run/serve/refine.h"
#include "superstep/run/serve/served_answers.h"
#include "superstep/run/serve/served_bytes.h"
#include "superstep/run/serve/timing.h"
#include "superstep/run/task.h"
#include "superstep/run/train/input_ranges.h"
#include "superstep/transform/training/training_form.h"

namespace superstep::run {
namespace {

constexpr std::int64_t default_batch = 512;

// A model file without data is timed on random ones, one sample a call unless the user says otherwise.
std::int64_t wanted_batch(const InferSettings& settings, const Model& model) {
  if (settings.batch > 0) return settings.batch;
  if (model.fixed_batch() > 0) return model.fixed_batch();
  return is_model_file(settings.workload) && settings.input.empty() ? 1 : default_batch;
}

std::int64_t sample_count(const InferSettings& settings, std::int64_t batch) {
  if (settings.samples > 0 || !settings.input.empty()) return settings.samples;
  return is_model_file(settings.workload) ? batch : 0;
}

// One batch of the task's inputs.
std::vector<Tensor> one_batch(target::Executable& executable, const Task& task, std::int64_t batch,
                              ThreadPool& pool) {
  std::vector<Tensor> inputs;
  for (const auto& port : executable.inputs()) inputs.emplace_back(port.type.element, port.type.shape);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < indices.size(); ++i)
    indices[i] = std::min(static_cast<std::int64_t>(i), task.size() - 1);
  task.fill_inputs(indices, inputs, pool);
  return inputs;
}

TrainSettings asked_model(const InferSettings& settings) {
  return {.workload = settings.workload,
          .model_options = settings.model_options,
          .shapes = settings.shapes,
          .keep = settings.keep,
          .bounds = settings.bounds};
}

// They would be ignored: a run has its own.
void refuse_other_extents(const InferSettings& asked, const TrainSettings& of_run) {
  for (const auto& [given, kept, option] : {std::tuple(&asked.shapes, &of_run.shapes, "--shape"),
                                            std::tuple(&asked.bounds, &of_run.bounds, "--bound")})
    if (!given->empty() && *given != *kept)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the model of a run is built as it was trained, with {}",
                              kept->empty() ? std::string("none") : join(*kept, ", ")),
                  option, fmt::format("leave {} away", option));
}

// Those of the folder or file that was named; nothing where none was.
std::optional<Weights> weights_for(const InferSettings& settings) {
  if (settings.weights.empty()) return std::nullopt;
  if (!settings.model_options.empty() && !is_published_weights(settings.weights))
    throw Error(ErrorCode::invalid_argument, "the model of a run is built as it was trained", "--set",
                "leave it away, or give weights that are no run's");
  Weights weights = load_weights_for(asked_model(settings), settings.weights);
  if (weights.of_a_run) refuse_other_extents(settings, weights.settings);
  return weights;
}

// The model is built as it was trained, in the precision that is asked for; for int8 in f32 first.
TrainSettings model_settings_of(const InferSettings& settings, const std::optional<Weights>& weights) {
  TrainSettings model = weights ? weights->settings : asked_model(settings);
  model.keep = settings.keep;
  if (!settings.precision.empty())
    model.precision = settings.precision == "int8" ? "f32" : settings.precision;
  return model;
}

// As many as were asked for, or as the recipe of the weights says; bytes have no masks.
int passes_of(const InferSettings& settings, const Model& model) {
  if (settings.passes < 0) return settings.precision == "int8" ? 0 : model.recipe().passes;
  if (settings.passes == 0) return 0;
  const char* why = settings.passes == 1           ? "one pass has no spread"
                    : settings.precision == "int8" ? "masks are for f32, bf16 and f16"
                                                   : nullptr;
  if (why) throw Error(ErrorCode::invalid_argument, why, "--passes", "give 2 or more, without int8, or 0");
  const graph::Graph sampled = model.sampling()(std::max<std::int64_t>(1, model.fixed_batch()));
  const auto counts_masks = [&](graph::ValueId state) {
    return sampled.value(state).name == transform::dropout_counter;
  };
  if (std::ranges::any_of(sampled.states(), counts_masks)) return settings.passes;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' drops nothing out: all passes are the same", settings.workload), "--passes",
              "serve a run that was trained with dropout");
}

// Of each executable's calls; empty for a modelled machine.
std::vector<std::vector<Metric>> timings_of(std::span<target::Executable* const> executables,
                                            const Task& task, std::int64_t batch, ThreadPool& pool,
                                            const TimingEffort& effort) {
  std::vector<std::vector<Metric>> timings(executables.size());
  if (executables[0]->modelled_time()) return timings;
  const auto seconds = time_calls(executables, one_batch(*executables[0], task, batch, pool), effort);
  for (std::size_t i = 0; i < seconds.size(); ++i) timings[i] = serving_metrics(seconds[i], batch);
  return timings;
}

void put_first(std::vector<Metric> timing, std::vector<Metric>& metrics) {
  metrics.insert(metrics.begin(), std::make_move_iterator(timing.begin()),
                 std::make_move_iterator(timing.end()));
}

// From when the work began, at `begun`, until a sample can be computed: planned, weights read and packed.
void get_ready(std::span<target::Executable* const> executables, const Stopwatch& begun,
               InferReport& report) {
  for (target::Executable* executable : executables) executable->make_ready();
  if (!executables[0]->modelled_time()) report.start_seconds = begun.seconds();
}

// Timings of answers that are written, which do not wait for them: after that. `cold`: they went through
// other plans.
TimingEffort effort_behind(bool cold) {
  TimingEffort effort = brief_timing;
  if (cold) effort.warm_up_calls = thorough_timing.warm_up_calls, effort.warm_up_seconds = effort.seconds;
  return effort;
}

// Speed goes before what the report holds. Timings are the model's, and for int8 those in f32.
void add_timings(const std::vector<std::vector<Metric>>& timings, InferReport& report) {
  put_first(timings[0], report.metrics);
  if (timings.size() > 1) put_first(timings[1], report.f32_metrics);
  if (report.start_seconds > 0) report.metrics.push_back(measured_metric("start", report.start_seconds, "s"));
}

void check_refinement(const InferSettings& settings, const workload::Workload& workload) {
  if (settings.refine == 0) return;
  const char* why = !workload.answer               ? "the loss of this workload needs labels"
                    : settings.precision == "int8" ? "bytes have no derivative; serve in f32, bf16 or f16"
                    : settings.passes > 0          ? "the mean of passes with masks is no answer of one model"
                                                   : nullptr;
  if (why) throw Error(ErrorCode::invalid_argument, why, "--refine");
}

// Replaces outputs and quality by what comes of refining; the report keeps the quality before.
void refine_served(const InferSettings& settings, const Model& model, const Task& task, ThreadPool& pool,
                   Served& served, InferReport& report) {
  Refiner refiner(model, target::find_target(settings.target),
                  {.steps = settings.refine, .threads = settings.threads});
  std::vector<std::int64_t> indices(static_cast<std::size_t>(task.size()));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  if (task.has_labels()) report.metrics_before = task.quality(indices, served.outputs);
  report.refine_seconds = refine_all(refiner, task, served.outputs, pool) / static_cast<double>(task.size());
  std::erase_if(served.metrics, [&](const Metric& metric) {
    return std::ranges::any_of(report.metrics_before,
                               [&](auto& before) { return before.name == metric.name; });
  });
  served.metrics.push_back(measured_metric("refine_time", report.refine_seconds, "s"));
  if (task.has_labels())
    for (Metric& quality : task.quality(indices, served.outputs))
      served.metrics.push_back(std::move(quality));
}

// Samples of the user's that are unlike what the weights were learnt from, where the task can tell and the
// data of the training are still there.
std::vector<std::string> outside_of_training(const Task& task, const Weights& weights, ThreadPool& pool) {
  const TrainSettings& training = weights.settings;
  const auto is_gone = [](const std::filesystem::path& data) {
    return !data.empty() && !data::are_there(data);
  };
  if (!task.knows_domain() || is_gone(training.data) || is_gone(training.validation)) return {};
  const auto learnt_from = Model(training).open_task(task_settings_of(training, pool));
  return task.outside(*learnt_from);
}

void say_of_weights(const InferSettings& settings, const Weights& weights, const Model& model,
                    const Task& task, ThreadPool& pool, InferReport& report) {
  report.unused_weights = weights.unused;
  report.without_digest = weights.of_a_run && !weights.has_digest;
  if (!weights.of_a_run || settings.input.empty()) return;
  report.outside = outside_of_training(task, weights, pool);
  const OutsideOfRanges beyond = count_outside(task, model, read_input_ranges(settings.weights), pool);
  if (beyond.samples > 0)
    report.outside.push_back(
        fmt::format("{} of {} samples have values of '{}' outside of the range that the training had",
                    beyond.samples, task.size(), beyond.input));
}

void check_lengths(const InferSettings& settings) {
  if (settings.lengths.empty()) return;
  const char* why = settings.precision == "int8" ? "bytes are calibrated on one length"
                    : settings.passes > 0        ? "passes with masks are of one length"
                    : settings.refine > 0        ? "answers are refined at one length"
                    : settings.chips.several()   ? "several chips share batches of one length"
                    : settings.target == "cpu"   ? nullptr
                                                 : "plans of several lengths run on the cpu";
  if (why) throw Error(ErrorCode::invalid_argument, why, "--lengths", "leave it away");
}

// Whole batches of one length are filled up: small ones waste little.
constexpr std::int64_t batch_of_lengths = 8;

std::unique_ptr<LengthPlans> length_plans_of(const InferSettings& settings, const TrainSettings& model,
                                             const std::optional<Weights>& weights, std::int64_t batch) {
  if (settings.lengths.empty()) return nullptr;
  auto plans = std::make_unique<LengthPlans>(LengthPlans::Settings{
      .model = model,
      .lengths = settings.lengths,
      .compile = {.batch = std::min(batch, batch_of_lengths), .threads = settings.threads},
      .target = &target::find_target(settings.target)});
  if (weights) plans->set_parameters(states_with_counter(*weights), weights->where);
  return plans;
}

// Compiled, with the parameters there are; a file that could not hold its outputs is refused before the work.
std::unique_ptr<Evaluator> opened(const InferSettings& settings, const Model& model,
                                  const std::optional<Weights>& weights, const Task& task, std::int64_t batch,
                                  const target::GraphAtBatch& graph) {
  const std::int64_t fixed = model.fixed_batch();
  const std::vector<std::string> whole_outputs = model.whole_outputs();
  auto evaluator = std::make_unique<Evaluator>(
      target::find_target(settings.target), graph,
      target::CompileOptions{.batch = batch,
                             .micro_batch = fixed,
                             .threads = settings.threads,
                             .measure_steps = settings.measure_steps,
                             .chips = settings.chips},
      fixed > 0 || settings.chips.several() || !whole_outputs.empty(), whole_outputs);
  if (weights) evaluator->set_parameters(states_with_counter(*weights), weights->where);
  const std::size_t outputs = evaluator->executable().outputs().size();
  if (!settings.output.empty() && !task.writes_table(settings.output))
    check_array_file(settings.output, settings.passes > 0 ? 2 * outputs : outputs);
  return evaluator;
}

// The model as it is served; for int8 the f32 one behind it.
std::vector<std::unique_ptr<Evaluator>> evaluators_of(const InferSettings& settings, const Model& model,
                                                      const std::optional<Weights>& weights, const Task& task,
                                                      std::int64_t batch, ThreadPool& pool,
                                                      InferReport& report) {
  const auto open = [&](const target::GraphAtBatch& graph) {
    return opened(settings, model, weights, task, batch, graph);
  };
  std::vector<std::unique_ptr<Evaluator>> evaluators;
  if (settings.precision == "int8")
    evaluators.push_back(open(quantized(settings, model, weights, task, pool, report).graph));
  const target::Target& target = target::find_target(settings.target);
  evaluators.push_back(open(settings.passes > 0 ? model.sampling(&target) : model.inference(&target)));
  return evaluators;
}

// The samples that are asked about, as many as are wanted.
std::unique_ptr<Task> input_of(const InferSettings& settings, const Model& model,
                               const TrainSettings& of_model, std::int64_t wanted, ThreadPool& pool) {
  return model.open_task({.data = settings.input,
                          .samples = sample_count(settings, wanted),
                          .seed = of_model.seed,
                          .model_options = of_model.model_options,
                          .labels_required = false,
                          .pool = &pool,
                          .skip_broken = settings.skip_broken,
                          .crop = settings.crop,
                          .scalings = scalings_of(of_model),
                          .tokenizer = settings.tokenizer});
}

}  // namespace

InferReport infer(const InferSettings& given) {
  const Stopwatch begun;
  InferSettings settings = given;
  check_int8_options(settings);
  const std::optional<Weights> weights = weights_for(settings);
  TrainSettings model_settings = model_settings_of(settings, weights);
  model_settings.data = settings.input;
  model_settings.validation.clear();
  model_settings.skip_broken = settings.skip_broken;
  model_settings.crop = settings.crop;
  model_settings.tokenizer = settings.tokenizer;
  model_settings.augmentation.clear();
  scale_other_data(model_settings, settings.scale, settings.offset);
  const Model model(model_settings);
  settings.passes = passes_of(settings, model);
  check_refinement(settings, model.workload());
  check_lengths(settings);
  ThreadPool pool(settings.threads);
  const std::int64_t wanted = wanted_batch(settings, model), fixed = model.fixed_batch();
  const auto task = input_of(settings, model, model_settings, wanted, pool);
  // Fewer samples than a batch fill a smaller one, where no chips are to share it.
  const std::int64_t batch = fixed > 0                  ? fixed
                             : settings.chips.several() ? wanted
                                                        : std::min(wanted, task->size());
  InferReport report{
      .metrics = {}, .samples = task->size(), .plan = {}, .outside = {}, .f32_metrics = {}, .ranges = {}};
  report.notes = task->notes();
  const auto evaluators = evaluators_of(settings, model, weights, *task, batch, pool, report);
  std::vector<target::Executable*> executables;
  for (const auto& evaluator : evaluators) executables.push_back(&evaluator->executable());
  get_ready(executables, begun, report);
  const auto plans = length_plans_of(settings, model_settings, weights, batch);
  // Where speed is what was asked for, or two are held against each other, it is taken first: all are warm
  // for the samples then.
  const bool written = !settings.output.empty(), answers_first = written && evaluators.size() == 1;
  std::vector<std::vector<Metric>> timings;
  if (!answers_first)
    timings = timings_of(executables, *task, batch, pool, written ? effort_behind(true) : thorough_timing);
  const auto served_by = [&](std::size_t i) {
    return serve(*evaluators[i], plans.get(), *task, weights.has_value(), settings.passes, pool);
  };
  Served served = served_by(0);
  if (evaluators.size() > 1) report.f32_metrics = served_by(1).metrics;
  if (settings.refine > 0) refine_served(settings, model, *task, pool, served, report);
  const double seconds_of_sample = served.seconds / static_cast<double>(task->size()) + report.refine_seconds;
  if (!model.numbers_samples()) of_one_call(served, model.whole_outputs());
  if (written)
    write_outputs(settings.output, served.ports, served.outputs, settings, *task, seconds_of_sample);
  say_of_answers(served, report);
  report.metrics = std::move(served.metrics);
  if (answers_first) timings = timings_of(executables, *task, batch, pool, effort_behind(plans != nullptr));
  add_timings(timings, report);
  report.plan = executables[0]->summary();
  report.passes = settings.passes;
  if (plans) report.lengths = plans->used();
  if (weights) say_of_weights(settings, *weights, model, *task, pool, report);
  return report;
}

}  // namespace superstep::run
