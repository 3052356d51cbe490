#include "superstep/run/train/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/file/source/sample_rows.h"
#include "superstep/run/environment.h"
#include "superstep/run/model.h"
#include "superstep/run/quality.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/ranks/end_all.h"
#include "superstep/run/ranks/gradient_exchange.h"
#include "superstep/run/task.h"
#include "superstep/run/train/checkpoint.h"
#include "superstep/run/train/feeder.h"
#include "superstep/run/train/input_ranges.h"
#include "superstep/run/train/run_directory.h"
#include "superstep/run/train/run_keeper.h"
#include "superstep/run/train/train_observer.h"
#include "superstep/run/train/train_speed.h"
#include "superstep/run/train/train_state.h"
#include "superstep/run/train/train_tune.h"
#include "superstep/run/train/validation.h"
#include "superstep/target/sends_ahead.h"
#include "superstep/workload/training_curve.h"

namespace superstep::run {
namespace {

using nlohmann::json;

const std::string norm_of_parameter = fmt::format("{}/", transform::gradient_norm);

// One sitting of a training run.
class Training {
 public:
  Training(const TrainSettings& settings, const TrainOptions& options)
      : model_(settings),
        settings_(checked(model_, options)),
        options_(options),
        keeper_(settings_.workload, options.out, options.resume, world_.rank() == 0, options.part_of),
        pool_(settings_.replicas),
        task_(open_data()),
        batches_(batches_an_epoch(*task_, settings_.batch)) {
    scheduled_steps_ =
        std::max<std::int64_t>(1, std::llround(settings_.epochs * static_cast<double>(batches_)));
    last_step_ = settings_.steps > 0 ? settings_.steps : scheduled_steps_;
    if (settings_.stop_after > 0)
      last_step_ = std::min(
          last_step_,
          std::max<std::int64_t>(1, std::llround(settings_.stop_after * static_cast<double>(batches_))));
    check_ranks();
    check_watched();
    model_.settle_written_batch(settings_.batch);
    compile();
    open_folder();
    look_at_inputs();
    if (options_.planned) options_.planned(executable_->summary());
    tell_model();
    tell_beginning();
  }

  // Ranks stop together, at the end of a step; one alone stops where it is, or at the end of a step that has
  // begun to change the parameters. The last whole step is saved, which takes as long as it takes.
  TrainReport run() {
    if (options_.rehearsal_seconds > 0) return rehearse();
    std::optional<HoldEnd> until_it_is_saved;
    if (keeper_.writes()) until_it_is_saved.emplace("the step that has begun is finished and saved first");
    try {
      return train_to_the_end();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::interrupted) throw;
    }
    stop();
  }

 private:
  // A goal that is no metric of the workload is refused before anything is done for it.
  static const TrainSettings& checked(const Model& model, const TrainOptions& options) {
    if (model.settings().until) check_until(*model.settings().until, model.workload());
    samples_to_validate(options.validate, 1, 1);
    if (model.settings().samples > 0 && !model.settings().validation.empty())
      throw Error(ErrorCode::invalid_argument, "counts from the front, where those that train are",
                  "--samples", "leave --samples or --validation away");
    model.passes(true);
    return model.settings();
  }

  Feeder make_feeder() {
    return {*task_,
            prototypes_,
            settings_.batch,
            settings_.seed,
            settings_.augment,
            {static_cast<std::uint64_t>(state_.step / batches_), state_.step % batches_},
            {world_.rank(), world_.size()},
            {.readers = options_.data_threads, .bytes = data::data_memory(options_.data_memory)}};
  }

  // The first rank's clock decides for all.
  bool rehearses(const Stopwatch& watch) const {
    constexpr std::size_t least = 3;  // steps: the first one warms up
    const bool wanted = step_seconds_.size() < least || watch.seconds() < options_.rehearsal_seconds;
    return state_.step < last_step_ && world_.any(world_.rank() == 0 && wanted);
  }

  // Seconds that a validation on so many samples takes, by one on a few of them: the first is warm-up.
  std::function<double(std::int64_t)> time_validation() {
    const std::int64_t few = std::min<std::int64_t>(256, validated_samples_after(last_step_));
    if (few == 0) return [](std::int64_t) { return 0.0; };
    quality_ = evaluate(1, few);  // plans, and touches its memory
    const Stopwatch watch;
    evaluate(1, few);
    const double each = watch.seconds() / static_cast<double>(few);
    return [each](std::int64_t samples) { return each * static_cast<double>(samples); };
  }

  TrainReport rehearse() {
    Feeder feeder = make_feeder();
    observer_.epoch_begun(epoch());
    const Progress phase = Progress::phase("rehearsing " + settings_.workload);
    const Stopwatch watch;
    while (rehearses(watch)) {
      train_step(feeder);
      if (world_.any(interrupted())) throw Error(ErrorCode::interrupted, "between two steps");
    }
    observer_.epoch_ended(epoch(), epoch_throughput());
    const auto validation = time_validation();
    const std::int64_t at_the_end = validated_samples_after(last_step_);
    const double epochs = static_cast<double>(last_step_) / static_cast<double>(batches_);
    TrainReport report{.metrics = {},
                       .steps = last_step_,
                       .epochs = epochs,
                       .goal = {},
                       .plan = executable_->summary(),
                       .validated = at_the_end,
                       .recipe = settings_.recipe + ": " + workload::to_string(model_.recipe()),
                       .task = task_->describe(),
                       .data = task_};
    report.metrics = rehearsal_metrics({.step_seconds = step_seconds_,
                                        .steps = last_step_,
                                        .epochs = epochs,
                                        .validation = validation(std::min(Validation::quick, at_the_end)),
                                        .last_validation = validation(at_the_end),
                                        .compile_seconds = report.plan.compile_seconds});
    return report;
  }

  TrainReport train_to_the_end() {
    Progress progress(settings_.workload, static_cast<double>(last_step_ * settings_.batch), "samples",
                      static_cast<double>(state_.step * settings_.batch));
    Feeder feeder = make_feeder();
    sitting_ = last_checkpoint_ = Stopwatch();
    const std::int64_t first_step = state_.step;
    if (stopped_before_its_epoch_ended()) end_epoch(progress);
    while (state_.step < last_step_ && !ends_early()) {
      if (state_.step == first_step || state_.step % batches_ == 0) observer_.epoch_begun(epoch());
      train_step(feeder);
      progress.update(static_cast<double>(state_.step * settings_.batch), note());
      const bool epoch_ends = state_.step % batches_ == 0;
      if (epoch_ends) end_epoch(progress);
      const bool due = last_checkpoint_.seconds() > options_.checkpoint_seconds;
      if (epoch_ends || due) checkpoint();
      if (world_.any(interrupted())) throw Error(ErrorCode::interrupted, "between two steps");
    }
    progress.finish(note());
    return finish(first_step, feeder.seconds_waited());
  }

  std::unique_ptr<Task> open_data() {
    const Progress phase = Progress::phase("opening the data of " + settings_.workload);
    observer_.data_touched(settings_, model_.schedule());
    TaskSettings samples = task_settings_of(settings_, pool_);
    samples.data_memory = options_.data_memory;
    return model_.open_task(samples);
  }

  void tell_model() const {
    if (!options_.tell || world_.rank() > 0) return;
    for (const std::string& line : task_->notes()) options_.tell("note: " + line);
    // The files say which samples train, and these come first.
    if (settings_.samples > 0 && !settings_.data.empty() && task_->training_count() == task_->size())
      options_.tell(
          fmt::format("warning: all of the first {} samples train: none is left to validate on "
                      "(leave --samples away)",
                      task_->size()));
    if (!model_.initializers().empty()) options_.tell(onnx::to_string(model_.initializers()));
    if (const std::string& why = model_.why_written_batch_is_fixed(); !why.empty())
      options_.tell(fmt::format("model.onnx will be of batches of {}: {}", model_.written_batch(), why));
    if (task_->reads_as_it_goes())
      options_.tell(
          fmt::format("the samples are read while they are trained on: they do not fit into {} "
                      "(--data-memory)",
                      format_bytes(data::data_memory(options_.data_memory))));
    if (const data::ForcedOrder forced = task_->forced_order(); !forced.shards.empty())
      options_.tell(
          fmt::format("they can only be read in their order: {} parts in a random order, shuffled "
                      "within {} samples",
                      forced.shards.size(), forced.buffer));
  }

  void tell_beginning() const {
    const target::PlanSummary plan = executable_->summary();
    observer_.begun({.training_samples = task_->training_count(),
                     .validation_samples = task_->size() - task_->training_count(),
                     .scheduled_steps = scheduled_steps_,
                     .warm_up_steps = warm_up_steps(model_.schedule().shape, moment(0)),
                     .micro_batches = plan.batch / std::max<std::int64_t>(1, plan.micro_batch)});
  }

  Moment moment(std::int64_t step) const { return {step, scheduled_steps_, batches_}; }
  double rate_of(std::int64_t step) const {
    return learning_rate(model_.schedule(), moment(step), state_.plateau.reduced);
  }
  bool ends_early() const { return state_.reached || gives_up(state_.plateau, model_.schedule().shape); }

  double run_seconds() const { return state_.seconds + sitting_.seconds(); }
  // That of the step to come, from 1.
  std::int64_t epoch() const { return state_.step / batches_ + 1; }

  double epoch_throughput() const {
    return epoch_seconds_ > 0 ? static_cast<double>(epoch_timed_steps_ * settings_.batch) / epoch_seconds_
                              : 0;
  }

  // Every rank trains on an equal part of each batch; the batch is that of all ranks together.
  void check_ranks() const {
    if (settings_.batch % world_.size() != 0)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("a batch of {} cannot be divided over {} ranks", settings_.batch, world_.size()),
          "--batch", "choose a multiple of the number of ranks");
    if (settings_.devices > 1 && world_.size() > 1)
      throw Error(ErrorCode::unsupported, "a rank trains on one device", "--replicas",
                  "leave it away, or start one rank");
    if (settings_.batch % settings_.devices != 0)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("a batch of {} cannot be divided over {} devices", settings_.batch, settings_.devices),
          "--batch", "choose a multiple of the number of --replicas");
  }

  // Who asks for what a metric decides must have samples that give one.
  void check_watched() const {
    const char* const option = settings_.patience > 0                      ? "--patience"
                               : settings_.schedule.starts_with("plateau") ? "--schedule plateau"
                                                                           : nullptr;
    if (option && task_->training_count() >= task_->size())
      throw Error(ErrorCode::invalid_argument,
                  "no samples are left to validate on, so nothing would be watched", option,
                  "leave it away, or give data of which some validate");
  }

  void compile() {
    const Progress phase = Progress::phase("compiling " + settings_.workload);
    const target::Target& target = target::find_target(settings_.target);
    target::CompileOptions plan{
        .batch = settings_.batch / world_.size(),
        .micro_batch = micro_batch(),
        .threads = settings_.replicas,
        .memory_limit = static_cast<std::size_t>(settings_.memory_limit),
        .parts = exchange_.parts(),
        .chips = {.replicas = settings_.devices, .divide_states = settings_.divide_parameters}};
    if (options_.tune && plan.micro_batch == 0) {
      const Tuning tuning = tune_training(target, model_, *task_, plan);
      // Into the run's configuration, so that a resumed run has the same bits.
      plan.micro_batch = settings_.micro_batch = tuning.chosen.micro_batch;
      plan.threads = settings_.replicas = tuning.chosen.threads;
      tuning_ = to_string(tuning);
    }
    plan.measure_steps = options_.measure_steps;
    executable_ = target.compile(model_.training_step(&target), plan);
    validation_.emplace(target, model_, *task_, pool_, settings_.replicas);
    const auto ports = executable_->inputs();
    for (std::size_t i = 0; i + 1 < ports.size(); ++i)
      prototypes_.emplace_back(ports[i].type.element, ports[i].type.shape);
    outputs_.emplace_back(executable_->outputs()[0].type.element, executable_->outputs()[0].type.shape);
  }

  // A model file that fixes its batch has one micro-batch, which is that batch.
  std::int64_t micro_batch() const {
    return model_.fixed_batch() > 0 ? model_.fixed_batch() : settings_.micro_batch;
  }

  void open_folder() {
    // One rank writes. All read the same folder when they resume: their states stay the same bits.
    if (const auto found = keeper_.newest())
      resume_from(*found);
    else if (settings_.weights.empty())
      fit_states(*executable_, model_, *task_, pool_);
    else
      begin_with(*executable_, model_, settings_.weights);
    world_.barrier();
    // The end of an epoch that is made again is logged again: what a sitting that was killed said of it goes.
    const std::int64_t logged = stopped_before_its_epoch_ended() ? state_.step - 1 : state_.step;
    keeper_.begin(to_json(settings_), logged, environment_of(settings_.target, settings_.replicas));
  }

  // What the model will be asked later is held against what it learnt from; what is odd about that is told.
  void look_at_inputs() {
    if (options_.resume || world_.rank() > 0) return;
    const InputSurvey survey = survey_inputs(*task_, model_, task_->training_count(), pool_);
    if (keeper_.writes()) write_input_ranges(keeper_.folder(), survey);
    if (!options_.tell) return;
    for (const std::string& line : survey.findings()) options_.tell("warning: " + line);
  }

  void resume_from(const Checkpoint& checkpoint) {
    const RunDirectory directory = RunDirectory::open(options_.out);
    restore(*executable_, checkpoint, directory.checkpoints().string());
    state_ = state_of(checkpoint, directory.checkpoints().string());
    // With a whole epoch behind it, what is told of the loss is that epoch's (told_loss).
    if (state_.step > state_.epoch_steps) epoch_losses_.push_back(state_.loss);
    if (state_.step > last_step_)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("has done {} steps: it cannot end after {}", state_.step, last_step_),
                  options_.out.string(), "give more --steps or --epochs");
    // Another goal than the one that was reached.
    if (settings_.until != train_settings_from_json(directory.config()).until) state_.reached = false;
  }

  // It was stopped in the evaluation: the steps of the epoch are done, and the rest comes now.
  bool stopped_before_its_epoch_ended() const {
    return state_.step > 0 && state_.step % batches_ == 0 && state_.epoch_steps == batches_;
  }

  // What all ranks do or none: they would wait for the one that stopped.
  std::unique_ptr<Uninterrupted> all_or_none() const {
    return world_.size() > 1 ? std::make_unique<Uninterrupted>() : nullptr;
  }

  void train_step(Feeder& feeder) {
    std::vector<Tensor> inputs = next_batch(feeder);
    inputs.push_back(Tensor::scalar(static_cast<float>(rate_of(state_.step))));
    const Stopwatch watch;
    target::run_sending_ahead(*executable_, inputs, outputs_, [&] { return batch_ahead(feeder); });
    step_seconds_.push_back(watch.seconds());
    epoch_seconds_ += step_seconds_.back();
    ++epoch_timed_steps_;
    ++state_.step;
    state_.loss = outputs_[0].at(0);  // of all ranks: averaged with the gradients
    state_.epoch_loss += state_.loss;
    ++state_.epoch_steps;
    if (!std::isfinite(state_.loss)) diverged();
  }

  std::vector<Tensor> next_batch(Feeder& feeder) {
    if (!ahead_.empty()) return std::exchange(ahead_, {});
    const auto together = all_or_none();
    return feeder.next();
  }

  // Of the step after this one, for a device that copies it while it computes this one.
  std::vector<Tensor> batch_ahead(Feeder& feeder) {
    if (state_.step + 1 < last_step_) ahead_ = feeder.next_if_ready();
    return ahead_;
  }

  // Of sequences the labels may need more frames than there are, whatever the rate.
  std::string cure() const {
    if (std::isinf(state_.loss) && settings_.loss.find("ctc") != std::string::npos)
      return "labels that do not fit into their frames have an infinite ctc: zero_infinity=true leaves them "
             "out";
    return fmt::format("the learning rate there was {:.3g}: try a smaller --learning-rate",
                       rate_of(state_.step - 1));
  }

  [[noreturn]] void diverged() {
    const std::string loss = std::isnan(state_.loss) ? "nan" : fmt::format("{}", state_.loss);
    keeper_.log({{"step", state_.step}, {"event", "diverged"}});
    throw Error(ErrorCode::diverged, fmt::format("the loss is {} at step {}", loss, state_.step),
                settings_.workload,
                cure() + (keeper_.writes() ? "; the last checkpoint is from before" : ""));
  }

  std::string note() const {
    std::string text = fmt::format("loss {:.3g}", state_.loss);
    if (!quality_.empty())
      text += fmt::format("  {} {:.4g} {}", quality_[0].name, quality_[0].value, quality_[0].unit);
    return text;
  }

  // A validation that observers hear of.
  std::vector<Metric> evaluate(std::int64_t epoch, std::int64_t most) {
    const Progress phase = Progress::phase("evaluating " + settings_.workload);
    const auto together = all_or_none();
    observer_.evaluation_begun(epoch);
    std::vector<Metric> found = validation_->quality(*executable_, most);
    observer_.evaluation_ended(epoch, found);
    return found;
  }

  // Of f16: what its loss is multiplied by now, and the steps whose gradients were not finite.
  std::vector<Metric> scale_metrics() const {
    if (settings_.precision != "f16") return {};
    const auto of_state = [&](const char* name) { return executable_->state(name).at(0); };
    return {{.name = "loss_scale", .value = of_state("loss_scale"), .unit = ""},
            {.name = "skipped_steps", .value = of_state("loss_scale.skipped"), .unit = "steps"}};
  }

  // Of the last step: the lengths of its gradients.
  json gradient_norms() const {
    json norms = json::object();
    if (!settings_.gradient_norms) return norms;
    for (const std::string& name : executable_->state_names())
      if (name == transform::gradient_norm || name.starts_with(norm_of_parameter))
        norms[name] = executable_->state(name).at(0);
    return norms;
  }

  // Evaluates before it writes anything: what is stopped in between is done again as a whole.
  void end_epoch(Progress& progress) {
    const std::int64_t epoch = state_.step / batches_;
    observer_.epoch_ended(epoch, epoch_throughput());
    quality_ = evaluate(epoch, std::min(Validation::quick, validated_samples()));
    const bool reached = reaches_goal(epoch);
    const json points = curve_points(epoch - 1);
    json line{{"step", state_.step},
              {"epoch", epoch},
              {"seconds", run_seconds()},
              {"loss", state_.mean_loss()},
              {"learning_rate", rate_of(state_.step - 1)}};
    line["throughput"] = epoch_throughput();
    for (const Metric& metric : scale_metrics()) line[metric.name] = metric.value;
    line.update(gradient_norms());
    for (const Metric& metric : quality_) line[metric.name] = metric.value;
    line.update(points);
    epoch_losses_.push_back(line["loss"]);
    state_.epoch_loss = epoch_seconds_ = 0;
    state_.epoch_steps = epoch_timed_steps_ = 0;
    state_.reached = reached;
    watch_plateau();
    keeper_.log(line);
    write_curve();
    keep_best();
    progress.milestone(fmt::format("epoch {} of {:.4g}, {}", epoch, settings_.epochs, note()));
  }

  // Of a task that keeps a curve; nothing else is there to see.
  json curve_points(std::int64_t epoch) {
    const auto together = all_or_none();
    return validation_->curve_points(*executable_, epoch);
  }
  void write_curve() {
    if (const auto* keeps = dynamic_cast<const workload::KeepsCurve*>(task_.get()); keeps && keeper_.writes())
      keeps->write_curve(keeper_.folder(), keeper_.directory().read_log());
  }

  // A goal, and a log that others judge, are of all samples, whatever that takes; else those that were asked
  // for.
  std::int64_t validated_samples() const { return validated_samples_after(state_.step); }
  std::int64_t validated_samples_after(std::int64_t step) const {
    const std::int64_t available = task_->size() - task_->training_count();
    const bool judged = options_.observer && options_.rehearsal_seconds <= 0;
    const bool all = options_.validate.empty() && (settings_.until || judged);
    return all ? available : samples_to_validate(options_.validate, available, step * settings_.batch);
  }
  void tell_validated() const {
    const std::int64_t available = task_->size() - task_->training_count(), looked_at = validated_samples();
    if (options_.tell && world_.rank() == 0 && looked_at < available)
      options_.tell(fmt::format("validated on {} samples of {}: --validate all looks at all of them",
                                looked_at, available));
  }

  // Quick validation first, then all samples: a target is reached on all of them or not at all. What ranks
  // see of the samples may differ (statistics of a normalisation): the first one decides.
  bool reaches_goal(std::int64_t epoch) {
    if (!settings_.until) return false;
    const auto good = [&] { return reaches(*settings_.until, model_.workload(), quality_); };
    if (!world_.any(world_.rank() == 0 && good())) return false;
    const std::vector<Metric> all = evaluate(epoch, task_->size());
    return world_.any(world_.rank() == 0 && reaches(*settings_.until, model_.workload(), all));
  }

  // Ranks reduce their rates together: the first one's samples decide.
  void watch_plateau() {
    const workload::Schedule& shape = model_.schedule().shape;
    if (shape.patience == 0 && shape.give_up == 0) return;
    const auto watched =
        shape.monitor.empty() ? quality_.begin() : std::ranges::find(quality_, shape.monitor, &Metric::name);
    if (watched == quality_.end()) return;  // nothing validates
    const bool higher = higher_is_better(model_.workload(), watched->name);
    const bool gained = world_.any(world_.rank() == 0 && state_.plateau.gains(watched->value, higher));
    const Moment next = moment(state_.step);
    watch(state_.plateau, shape, watched->value, gained, next.step < warm_up_steps(shape, next));
  }

  // By the metric that was asked for, else the first.
  void keep_best() {
    if (!keeper_.writes() || quality_.empty()) return;
    const auto asked = std::ranges::find(quality_, settings_.monitor, &Metric::name);
    const Metric& judged = asked != quality_.end() ? *asked : quality_[0];
    const bool higher = higher_is_better(model_.workload(), judged.name);
    if (state_.best && as_good(*state_.best, judged.value, higher)) return;
    state_.best = judged.value;
    write_checkpoint_file(keeper_.directory().best(), make_checkpoint());
  }

  // Of the last whole epoch, before there is one of the last step, of this sitting or of one before it.
  double told_loss() const { return epoch_losses_.empty() ? state_.loss : epoch_losses_.back(); }

  Checkpoint make_checkpoint() const {
    TrainState now = state_;
    now.loss = told_loss();
    return checkpoint_of(now, settings_.workload, run_seconds(), *executable_);
  }

  void checkpoint() {
    if (!keeper_.writes()) return;
    keeper_.save(make_checkpoint());
    last_checkpoint_ = Stopwatch();
  }

  [[noreturn]] void stop() {
    if (options_.out.empty())
      throw Error(ErrorCode::interrupted,
                  fmt::format("at step {}; without --out nothing was kept", state_.step));
    checkpoint();
    throw Error(ErrorCode::interrupted, fmt::format("at step {}, everything is saved", state_.step), {},
                keeper_.how_to_go_on());
  }

  TrainReport finish(std::int64_t first_step, double waited) {
    TrainReport report{
        .metrics = {},
        .steps = state_.step,
        .epochs = static_cast<double>(state_.step) / static_cast<double>(batches_),
        .goal = settings_.until ? to_string(*settings_.until, model_.workload()) : "",
        .reached = state_.reached,
        .gave_up = gives_up(state_.plateau, model_.schedule().shape) ? state_.plateau.without_gain : 0,
        .plan = executable_->summary(),
        .recipe = settings_.recipe + ": " + workload::to_string(model_.recipe()),
        .task = task_->describe(),
        .data = task_};
    if (!tuning_.empty()) report.plan.choice = tuning_;
    const bool within_epoch = state_.step % batches_ != 0;
    if (within_epoch && state_.step > first_step) observer_.epoch_ended(epoch(), epoch_throughput());
    report.validated = validated_samples();
    quality_ = evaluate((state_.step + batches_ - 1) / batches_, report.validated);
    tell_validated();
    // A curve ends where the run does, within an epoch, too.
    const bool ends_within = within_epoch && state_.step > first_step;
    const json points = ends_within ? curve_points(state_.step / batches_) : json::object();
    const HoldEnd until_it_is_written;
    add_speed(report, waited);
    for (Metric& metric : scale_metrics()) report.metrics.push_back(std::move(metric));
    report.metrics.push_back({.name = "loss", .value = told_loss(), .unit = ""});
    for (const Metric& metric : quality_) report.metrics.push_back(metric);
    observer_.finished();
    if (!keeper_.writes()) return report;
    checkpoint();
    write_self_test();
    model_.write_onnx(keeper_.directory().model(), served(states_of(*executable_)));
    json line{{"step", state_.step}, {"event", "finished"}, {"seconds", run_seconds()}};
    for (const Metric& metric : report.metrics) line[metric.name] = metric.value;
    line.update(points);
    if (ends_within) line["learning_rate"] = rate_of(state_.step - 1);
    keeper_.log(line);
    write_curve();
    return report;
  }

  // Of the weights that are served: the best, where something validated.
  void write_self_test() {
    const std::filesystem::path best = keeper_.directory().best();
    const std::map<std::string, Tensor> states =
        served(std::filesystem::exists(best) ? read_checkpoint(best).states : states_of(*executable_));
    executable_->release_working_memory();
    if (const auto test = validation_->self_test(model_, states))
      run::write_self_test(keeper_.folder(), states, *test);
  }

  void add_speed(TrainReport& report, double waited) const {
    if (step_seconds_.empty()) return;
    SittingTimes times{.batch = settings_.batch,
                       .steps_an_epoch = batches_,
                       .step_seconds = step_seconds_,
                       .elapsed = sitting_.seconds(),
                       .waited = waited,
                       .flops = report.plan.flops,
                       .compile_seconds = report.plan.compile_seconds,
                       .to_solution = std::nullopt};
    // A quality that was asked for and not reached has no time to it.
    if (!settings_.until || state_.reached) times.to_solution = state_.seconds + times.elapsed;
    report.metrics = speed_metrics(times);
    if (world_.size() == 1) return;
    std::ranges::copy(exchange_metrics(exchange_), std::back_inserter(report.metrics));
  }

  Communicator& world_ = communicator();
  Model model_;
  TrainSettings settings_;  // with every default filled in
  TrainOptions options_;
  RunKeeper keeper_;
  TrainObserver nobody_;
  TrainObserver& observer_ = options_.observer && world_.rank() == 0 ? *options_.observer : nobody_;
  GradientExchange exchange_{world_, {.mode = options_.exchange, .span = settings_.batch_norm_span}};
  ThreadPool pool_;
  std::shared_ptr<Task> task_;
  std::int64_t batches_, scheduled_steps_ = 0, last_step_ = 0;
  std::unique_ptr<target::Executable> executable_;
  std::optional<Validation> validation_;
  std::vector<Tensor> prototypes_, outputs_;
  std::vector<Tensor> ahead_;  // the next batch, where it has gone ahead to a device
  std::string tuning_;         // what the search found, for people

  TrainState state_;
  std::int64_t epoch_timed_steps_ = 0;
  double epoch_seconds_ = 0;
  std::vector<double> step_seconds_, epoch_losses_;
  std::vector<Metric> quality_;
  Stopwatch sitting_, last_checkpoint_;
};

}  // namespace

TrainReport train(const TrainSettings& settings, const TrainOptions& options) {
  Communicator& world = communicator();
  try {
    return Training(settings, options).run();
  } catch (const Error& error) {
    // These come to every rank at the same step.
    if (world.size() == 1 || error.code() == ErrorCode::interrupted || error.code() == ErrorCode::diverged)
      throw;
    end_all_ranks(world, error);
  }
}

}  // namespace superstep::run
