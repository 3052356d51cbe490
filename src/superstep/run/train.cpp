#include "superstep/run/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <numeric>
#include <thread>
#include <utility>

#include "superstep/base/interrupt.h"
#include "superstep/base/progress.h"
#include "superstep/base/thread_pool.h"
#include "superstep/run/checkpoint.h"
#include "superstep/run/environment.h"
#include "superstep/run/feeder.h"
#include "superstep/run/model.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/ranks/gradient_exchange.h"
#include "superstep/run/records.h"
#include "superstep/run/run_directory.h"
#include "superstep/run/task.h"
#include "superstep/run/train_observer.h"
#include "superstep/run/train_speed.h"
#include "superstep/run/train_state.h"
#include "superstep/run/tune.h"
#include "superstep/run/validation.h"

namespace superstep::run {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The others would wait for this rank for ever. An error that all have, the first one tells; the rest give it
// the time to.
[[noreturn]] void end_all_ranks(Communicator& world, const Error& error) {
  if (world.rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  fmt::print(stderr, "superstep: error: rank {} of {}: {}\n", world.rank(), world.size(), error.what());
  world.abort(error.code() == ErrorCode::invalid_argument ? 2 : 1);
  std::unreachable();  // a virtual function's [[noreturn]] is not seen through the call
}

// One sitting of a training run.
class Training {
 public:
  Training(const TrainSettings& settings, const TrainOptions& options)
      : model_(settings),
        settings_(model_.settings()),
        options_(options),
        pool_(settings_.replicas),
        task_(open_data()),
        batches_(task_->training_count() / settings_.batch) {
    if (batches_ < 1)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the {} training samples do not fill one batch of {}", task_->training_count(),
                              settings_.batch),
                  "--batch");
    scheduled_steps_ =
        std::max<std::int64_t>(1, std::llround(settings_.epochs * static_cast<double>(batches_)));
    last_step_ = settings_.steps > 0 ? settings_.steps : scheduled_steps_;
    check_ranks();
    compile();
    open_folder();
    tell_beginning();
  }

  TrainReport run() {
    Progress progress(settings_.workload, static_cast<double>(last_step_ * settings_.batch), "samples",
                      static_cast<double>(state_.step * settings_.batch));
    Feeder feeder(*task_, prototypes_, settings_.batch, settings_.seed, settings_.augment,
                  {static_cast<std::uint64_t>(state_.step / batches_), state_.step % batches_},
                  {world_.rank(), world_.size()});
    sitting_ = last_checkpoint_ = Clock::now();
    const std::int64_t first_step = state_.step;
    while (state_.step < last_step_ && !state_.reached) {
      if (state_.step == first_step || state_.step % batches_ == 0) observer_.epoch_begun(epoch());
      train_step(feeder);
      progress.update(static_cast<double>(state_.step * settings_.batch), note());
      const bool epoch_ends = state_.step % batches_ == 0;
      if (epoch_ends) end_epoch();
      const bool due = seconds_since(last_checkpoint_) > options_.checkpoint_seconds;
      if ((epoch_ends || due) && directory_) checkpoint();
      if (world_.any(interrupted())) stop();
    }
    progress.finish(note());
    return finish(first_step, feeder.seconds_waited());
  }

 private:
  std::unique_ptr<Task> open_data() {
    observer_.data_touched(settings_, model_.schedule());
    return model_.open_task({.data = settings_.data,
                             .samples = settings_.samples,
                             .seed = settings_.seed,
                             .model_options = settings_.model_options,
                             .pool = &pool_});
  }

  void tell_beginning() const {
    const target::PlanSummary plan = executable_->summary();
    observer_.begun({.training_samples = task_->training_count(),
                     .validation_samples = task_->size() - task_->training_count(),
                     .scheduled_steps = scheduled_steps_,
                     .micro_batches = plan.batch / std::max<std::int64_t>(1, plan.micro_batch)});
  }

  double run_seconds() const { return state_.seconds + seconds_since(sitting_); }
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
  }

  void compile() {
    const target::Target& target = target::find_target(settings_.backend);
    target::CompileOptions plan{.batch = settings_.batch / world_.size(),
                                .micro_batch = micro_batch(),
                                .threads = settings_.replicas,
                                .memory_limit = static_cast<std::size_t>(settings_.memory_limit),
                                .parts = exchange_.parts()};
    if (options_.tune && plan.micro_batch == 0) tune_plan(target, plan);
    plan.measure_steps = options_.measure_steps;
    executable_ = target.compile(model_.training_step(&target), plan);
    validation_.emplace(target, model_, *task_, pool_, settings_.replicas);
    const auto ports = executable_->inputs();
    for (std::size_t i = 0; i + 1 < ports.size(); ++i)
      prototypes_.emplace_back(ports[i].type.element, ports[i].type.shape);
    outputs_.emplace_back(executable_->outputs()[0].type.element, executable_->outputs()[0].type.shape);
  }

  // The choice goes into the run's configuration, so that a resumed run has the same bits.
  void tune_plan(const target::Target& target, target::CompileOptions& plan) {
    if (world_.size() > 1)
      throw Error(ErrorCode::invalid_argument, "a search times one rank alone", "--tune",
                  "tune without ranks, then give what it found as --micro-batch");
    const auto fill = [&](std::span<Tensor> inputs) {
      std::vector<std::int64_t> indices(static_cast<std::size_t>(plan.batch));
      std::iota(indices.begin(), indices.end(), std::int64_t{0});
      task_->fill(indices, 0, false, inputs.first(inputs.size() - 1));
      inputs.back() = Tensor::scalar(static_cast<float>(model_.schedule().peak));
    };
    TuningCache cache;
    const Tuning tuning = tune(target, model_.training_step(&target), plan, fill, cache);
    plan.micro_batch = settings_.micro_batch = tuning.chosen.micro_batch;
    plan.threads = settings_.replicas = tuning.chosen.threads;
    tuning_ = to_string(tuning);
  }

  // A model file that fixes its batch has one micro-batch, which is that batch.
  std::int64_t micro_batch() const {
    return model_.fixed_batch() > 0 ? model_.fixed_batch() : settings_.micro_batch;
  }

  void open_folder() {
    if (options_.out.empty()) return;
    // One rank writes. All read the same folder when they resume: their states stay the same bits.
    if (options_.resume) resume_from(RunDirectory::open(options_.out));
    world_.barrier();
    if (world_.rank() > 0) return;
    if (options_.resume) {
      directory_ = RunDirectory::open(options_.out);
      directory_->rewind_log(state_.step);
    } else {
      directory_ = RunDirectory::create(options_.out, to_json(settings_));
    }
    directory_->add_environment(environment_record(settings_.replicas));
  }

  void resume_from(const RunDirectory& directory) {
    const auto found = read_newest_checkpoint(directory.checkpoints());
    if (!found) return;
    restore(*executable_, *found, directory.checkpoints().string());
    state_ = state_of(*found, directory.checkpoints().string());
  }

  void train_step(Feeder& feeder) {
    std::vector<Tensor> inputs = feeder.next();
    inputs.push_back(
        Tensor::scalar(static_cast<float>(learning_rate(model_.schedule(), state_.step, scheduled_steps_))));
    const auto begun = Clock::now();
    executable_->run(inputs, outputs_);
    step_seconds_.push_back(seconds_since(begun));
    epoch_seconds_ += step_seconds_.back();
    ++epoch_timed_steps_;
    ++state_.step;
    state_.loss = outputs_[0].at(0);  // of all ranks: averaged with the gradients
    state_.epoch_loss += state_.loss;
    ++state_.epoch_steps;
    if (!std::isfinite(state_.loss)) diverged();
  }

  [[noreturn]] void diverged() {
    const std::string rate =
        fmt::format("{:.3g}", learning_rate(model_.schedule(), state_.step - 1, scheduled_steps_));
    if (directory_) directory_->log({{"step", state_.step}, {"event", "diverged"}});
    throw Error(ErrorCode::diverged, fmt::format("the loss is {} at step {}", state_.loss, state_.step),
                settings_.workload,
                fmt::format("the learning rate there was {}: try a smaller --learning-rate{}", rate,
                            directory_ ? "; the last checkpoint is from before" : ""));
  }

  std::string note() const {
    std::string text = fmt::format("loss {:.3g}", state_.loss);
    if (!quality_.empty())
      text += fmt::format("  {} {:.4g} {}", quality_[0].name, quality_[0].value, quality_[0].unit);
    return text;
  }

  // A validation that observers hear of.
  std::vector<Metric> evaluate(std::int64_t epoch, std::int64_t most) {
    observer_.evaluation_begun(epoch);
    std::vector<Metric> found = validation_->quality(*executable_, most);
    observer_.evaluation_ended(epoch, found);
    return found;
  }

  void end_epoch() {
    const std::int64_t epoch = state_.step / batches_;
    observer_.epoch_ended(epoch, epoch_throughput());
    quality_ = evaluate(epoch, Validation::quick);
    json line{{"step", state_.step},
              {"epoch", epoch},
              {"seconds", run_seconds()},
              {"loss", state_.mean_loss()},
              {"learning_rate", learning_rate(model_.schedule(), state_.step - 1, scheduled_steps_)}};
    line["throughput"] = epoch_throughput();
    for (const Metric& metric : quality_) line[metric.name] = metric.value;
    epoch_losses_.push_back(line["loss"]);
    state_.epoch_loss = epoch_seconds_ = 0;
    state_.epoch_steps = epoch_timed_steps_ = 0;
    if (directory_) directory_->log(line);
    look_at_quality();
    agree_on_quality();
  }

  void look_at_quality() {
    if (quality_.empty()) return;
    if (directory_ && (!state_.best || validation_->better(quality_[0].value, *state_.best))) {
      state_.best = quality_[0].value;
      write_checkpoint_file(directory_->best(), make_checkpoint());
    }
    // Quick validation first, then all samples: a target is reached on all of them or not at all.
    if (!settings_.until || !validation_->reaches(*settings_.until, quality_)) return;
    state_.reached = validation_->reaches(*settings_.until, evaluate(state_.step / batches_, task_->size()));
  }

  // What ranks see of the samples may differ (statistics of a normalisation): the first one decides.
  void agree_on_quality() {
    if (settings_.until) state_.reached = world_.any(world_.rank() == 0 && state_.reached);
  }

  // Of the last whole epoch, before there is one of the last step, of this sitting or of one before it.
  double told_loss() const { return epoch_losses_.empty() ? state_.loss : epoch_losses_.back(); }

  Checkpoint make_checkpoint() const {
    TrainState now = state_;
    now.loss = told_loss();
    return checkpoint_of(now, settings_.workload, run_seconds(), *executable_);
  }

  void checkpoint() {
    write_checkpoint(directory_->checkpoints(), make_checkpoint());
    last_checkpoint_ = Clock::now();
  }

  [[noreturn]] void stop() {
    if (options_.out.empty())
      throw Error(ErrorCode::interrupted,
                  fmt::format("at step {}; without --out nothing was kept", state_.step));
    if (directory_) checkpoint();
    throw Error(
        ErrorCode::interrupted, fmt::format("at step {}, everything is saved", state_.step), {},
        fmt::format("go on with: superstep train {} --resume {}", settings_.workload, options_.out.string()));
  }

  TrainReport finish(std::int64_t first_step, double waited) {
    TrainReport report{.metrics = {},
                       .steps = state_.step,
                       .epochs = static_cast<double>(state_.step) / static_cast<double>(batches_),
                       .reached = state_.reached,
                       .plan = executable_->summary(),
                       .task = task_->describe(),
                       .data = task_};
    if (!tuning_.empty()) report.plan.choice = tuning_;
    const bool within_epoch = state_.step % batches_ != 0;
    if (within_epoch && state_.step > first_step) observer_.epoch_ended(epoch(), epoch_throughput());
    quality_ = evaluate((state_.step + batches_ - 1) / batches_, task_->size());
    add_speed(report, waited);
    report.metrics.push_back({.name = "loss", .value = told_loss(), .unit = ""});
    for (const Metric& metric : quality_) report.metrics.push_back(metric);
    observer_.finished();
    if (!directory_) return report;
    checkpoint();
    model_.write_onnx(directory_->model(), states_of(*executable_));
    json line{{"step", state_.step}, {"event", "finished"}, {"seconds", run_seconds()}};
    for (const Metric& metric : report.metrics) line[metric.name] = metric.value;
    directory_->log(line);
    return report;
  }

  void add_speed(TrainReport& report, double waited) const {
    if (step_seconds_.empty()) return;
    SittingTimes times{.batch = settings_.batch,
                       .steps_an_epoch = batches_,
                       .step_seconds = step_seconds_,
                       .elapsed = seconds_since(sitting_),
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
  TrainObserver nobody_;
  TrainObserver& observer_ = options_.observer && world_.rank() == 0 ? *options_.observer : nobody_;
  GradientExchange exchange_{world_, {.mode = options_.exchange, .span = settings_.batch_norm_span}};
  ThreadPool pool_;
  std::shared_ptr<Task> task_;
  std::int64_t batches_, scheduled_steps_ = 0, last_step_ = 0;
  std::unique_ptr<target::Executable> executable_;
  std::optional<Validation> validation_;
  std::vector<Tensor> prototypes_, outputs_;
  std::optional<RunDirectory> directory_;
  std::string tuning_;  // what the search found, for people

  TrainState state_;
  std::int64_t epoch_timed_steps_ = 0;
  double epoch_seconds_ = 0;
  std::vector<double> step_seconds_, epoch_losses_;
  std::vector<Metric> quality_;
  Clock::time_point sitting_, last_checkpoint_;
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
