#include "superstep/run/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>
#include <utility>

#include "superstep/base/interrupt.h"
#include "superstep/base/progress.h"
#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/run/checkpoint.h"
#include "superstep/run/environment.h"
#include "superstep/run/evaluate.h"
#include "superstep/run/feeder.h"
#include "superstep/run/model.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/ranks/gradient_exchange.h"
#include "superstep/run/records.h"
#include "superstep/run/run_directory.h"
#include "superstep/run/task.h"
#include "superstep/run/train_observer.h"
#include "superstep/run/tune.h"

namespace superstep::run {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t evaluation_batch = 256;
constexpr std::int64_t quick_validation = 4096;  // samples looked at after an epoch; all of them at the end

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<std::int64_t> range(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(std::max<std::int64_t>(0, last - first)));
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

const Metric* find_metric(const std::vector<Metric>& metrics, const std::string& name) {
  for (const Metric& metric : metrics)
    if (metric.name == name) return &metric;
  return nullptr;
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
                      static_cast<double>(step_ * settings_.batch));
    Feeder feeder(*task_, prototypes_, settings_.batch, settings_.seed, settings_.augment,
                  {static_cast<std::uint64_t>(step_ / batches_), step_ % batches_},
                  {world_.rank(), world_.size()});
    sitting_ = last_checkpoint_ = Clock::now();
    const std::int64_t first_step = step_;
    while (step_ < last_step_ && !reached_) {
      if (step_ == first_step || step_ % batches_ == 0) observer_.epoch_begun(epoch());
      train_step(feeder);
      progress.update(static_cast<double>(step_ * settings_.batch), note());
      const bool epoch_ends = step_ % batches_ == 0;
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

  // That of the step to come, from 1.
  std::int64_t epoch() const { return step_ / batches_ + 1; }

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
    const std::int64_t validation = std::max<std::int64_t>(1, task_->size() - task_->training_count());
    const std::int64_t fixed = model_.fixed_batch();
    evaluator_.emplace(
        target, model_.inference(&target),
        target::CompileOptions{.batch = fixed > 0 ? fixed : std::min(evaluation_batch, validation),
                               .micro_batch = fixed,
                               .threads = settings_.replicas},
        fixed > 0);
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
      std::vector<std::int64_t> indices = range(0, plan.batch);
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
      directory_->rewind_log(step_);
    } else {
      directory_ = RunDirectory::create(options_.out, to_json(settings_));
    }
    directory_->add_environment(environment_record(settings_.replicas));
  }

  void resume_from(const RunDirectory& directory) {
    const auto found = read_newest_checkpoint(directory.checkpoints());
    if (!found) return;
    restore(*executable_, *found, directory.checkpoints().string());
    step_ = found->step;
    seconds_before_ = found->seconds;
    read_notes(found->notes);
  }

  void read_notes(const std::map<std::string, std::string>& notes) {
    const json all(notes);
    const auto number = [&](const char* name) {
      return all.contains(name) ? std::stod(notes.at(name)) : 0.0;
    };
    if (all.contains("best")) best_ = number("best");
    reached_ = all.contains("reached");
    epoch_loss_ = number("epoch_loss");
    epoch_steps_ = static_cast<std::int64_t>(number("epoch_steps"));
  }

  void train_step(Feeder& feeder) {
    std::vector<Tensor> inputs = feeder.next();
    inputs.push_back(
        Tensor::scalar(static_cast<float>(learning_rate(model_.schedule(), step_, scheduled_steps_))));
    const auto begun = Clock::now();
    executable_->run(inputs, outputs_);
    step_seconds_.push_back(seconds_since(begun));
    epoch_seconds_ += step_seconds_.back();
    ++epoch_timed_steps_;
    ++step_;
    loss_ = outputs_[0].at(0);  // of all ranks: averaged with the gradients
    epoch_loss_ += loss_;
    ++epoch_steps_;
    if (!std::isfinite(loss_)) diverged();
  }

  [[noreturn]] void diverged() {
    const std::string rate =
        fmt::format("{:.3g}", learning_rate(model_.schedule(), step_ - 1, scheduled_steps_));
    if (directory_) directory_->log({{"step", step_}, {"event", "diverged"}});
    throw Error(ErrorCode::diverged, fmt::format("the loss is {} at step {}", loss_, step_),
                settings_.workload,
                fmt::format("the learning rate there was {}: try a smaller --learning-rate{}", rate,
                            directory_ ? "; the last checkpoint is from before" : ""));
  }

  std::string note() const {
    std::string text = fmt::format("loss {:.3g}", loss_);
    if (!quality_.empty())
      text += fmt::format("  {} {:.4g} {}", quality_[0].name, quality_[0].value, quality_[0].unit);
    return text;
  }

  std::vector<Metric> validate(std::int64_t most) {
    const std::int64_t first = task_->training_count(), last = std::min(task_->size(), first + most);
    if (last <= first) return {};
    // Training and its validation never need their memory at the same time.
    executable_->release_working_memory();
    evaluator_->set_parameters(states_of(*executable_), "the trained model");
    const std::vector<std::int64_t> indices = range(first, last);
    const std::vector<Tensor> predictions = evaluator_->predict(*task_, indices, pool_);
    evaluator_->release();
    return task_->quality(indices, predictions);
  }

  // A validation that observers hear of.
  std::vector<Metric> evaluate(std::int64_t epoch, std::int64_t most) {
    observer_.evaluation_begun(epoch);
    std::vector<Metric> found = validate(most);
    observer_.evaluation_ended(epoch, found);
    return found;
  }

  void end_epoch() {
    const std::int64_t epoch = step_ / batches_;
    observer_.epoch_ended(epoch, epoch_throughput());
    quality_ = evaluate(epoch, quick_validation);
    json line{{"step", step_},
              {"epoch", epoch},
              {"seconds", seconds_before_ + seconds_since(sitting_)},
              {"loss", epoch_loss_ / static_cast<double>(std::max<std::int64_t>(1, epoch_steps_))},
              {"learning_rate", learning_rate(model_.schedule(), step_ - 1, scheduled_steps_)}};
    line["throughput"] = epoch_throughput();
    for (const Metric& metric : quality_) line[metric.name] = metric.value;
    epoch_losses_.push_back(line["loss"]);
    epoch_loss_ = epoch_seconds_ = 0;
    epoch_steps_ = epoch_timed_steps_ = 0;
    if (directory_) directory_->log(line);
    look_at_quality();
    agree_on_quality();
  }

  bool better(double a, double b) const {
    const auto& target = model_.workload().target;
    return target && target->higher_is_better ? a > b : a < b;
  }

  void look_at_quality() {
    if (quality_.empty()) return;
    if (directory_ && (!best_ || better(quality_[0].value, *best_))) {
      best_ = quality_[0].value;
      write_checkpoint_file(directory_->best(), make_checkpoint());
    }
    if (!settings_.until) return;
    const Metric* watched = find_metric(quality_, settings_.until->metric);
    if (!watched) {
      std::vector<std::string> names;
      for (const Metric& metric : quality_) names.push_back(metric.name);
      throw Error(ErrorCode::invalid_argument, "the workload has no such metric", settings_.until->metric,
                  unknown_name_hint(settings_.until->metric, names));
    }
    // Quick validation first, then all samples: a target is reached on all of them or not at all.
    if (better(settings_.until->value, watched->value)) return;
    const auto all = evaluate(step_ / batches_, task_->size());
    reached_ = !better(settings_.until->value, find_metric(all, settings_.until->metric)->value);
  }

  // What ranks see of the samples may differ (statistics of a normalisation): the first one decides.
  void agree_on_quality() {
    if (settings_.until) reached_ = world_.any(world_.rank() == 0 && reached_);
  }

  Checkpoint make_checkpoint() const {
    Checkpoint checkpoint{.workload = settings_.workload,
                          .signature = {},
                          .step = step_,
                          .seconds = seconds_before_ + seconds_since(sitting_),
                          .states = states_of(*executable_),
                          .notes = {}};
    checkpoint.signature = state_signature(checkpoint.states);
    checkpoint.notes["epoch_loss"] = fmt::format("{}", epoch_loss_);
    checkpoint.notes["epoch_steps"] = std::to_string(epoch_steps_);
    if (best_) checkpoint.notes["best"] = fmt::format("{}", *best_);
    if (reached_) checkpoint.notes["reached"] = "yes";
    return checkpoint;
  }

  void checkpoint() {
    write_checkpoint(directory_->checkpoints(), make_checkpoint());
    last_checkpoint_ = Clock::now();
  }

  [[noreturn]] void stop() {
    if (options_.out.empty())
      throw Error(ErrorCode::interrupted, fmt::format("at step {}; without --out nothing was kept", step_));
    if (directory_) checkpoint();
    throw Error(
        ErrorCode::interrupted, fmt::format("at step {}, everything is saved", step_), {},
        fmt::format("go on with: superstep train {} --resume {}", settings_.workload, options_.out.string()));
  }

  TrainReport finish(std::int64_t first_step, double waited) {
    TrainReport report{.metrics = {},
                       .steps = step_,
                       .epochs = static_cast<double>(step_) / static_cast<double>(batches_),
                       .reached = reached_,
                       .plan = executable_->summary(),
                       .task = task_->describe()};
    if (!tuning_.empty()) report.plan.choice = tuning_;
    const bool within_epoch = step_ % batches_ != 0;
    if (within_epoch && step_ > first_step) observer_.epoch_ended(epoch(), epoch_throughput());
    quality_ = evaluate((step_ + batches_ - 1) / batches_, task_->size());
    add_speed(report, first_step, waited);
    report.metrics.push_back(
        {.name = "loss", .value = epoch_losses_.empty() ? loss_ : epoch_losses_.back(), .unit = ""});
    for (const Metric& metric : quality_) report.metrics.push_back(metric);
    observer_.finished();
    if (!directory_) return report;
    checkpoint();
    model_.write_onnx(directory_->model(), states_of(*executable_));
    json line{{"step", step_}, {"event", "finished"}, {"seconds", seconds_before_ + seconds_since(sitting_)}};
    for (const Metric& metric : report.metrics) line[metric.name] = metric.value;
    directory_->log(line);
    return report;
  }

  // Steady state: the steps after the first epoch where there is more than one (measurement protocol 1.4).
  void add_speed(TrainReport& report, std::int64_t first_step, double waited) const {
    if (step_seconds_.empty()) return;
    const double elapsed = seconds_since(sitting_);
    const auto done = static_cast<double>((step_ - first_step) * settings_.batch);
    const auto warm = static_cast<std::ptrdiff_t>(
        std::min<std::size_t>(static_cast<std::size_t>(batches_), step_seconds_.size() - 1));
    std::vector<double> steady(step_seconds_.begin() + warm, step_seconds_.end());
    std::ranges::sort(steady);
    const double median = steady[steady.size() / 2];
    const auto add = [&](const char* name, double value, const char* unit) {
      report.metrics.push_back({.name = name, .value = value, .unit = unit});
    };
    add("throughput", static_cast<double>(settings_.batch) / median, "samples/s");
    add("throughput_with_data", done / elapsed, "samples/s");
    add("step_time", median, "s");
    add("flops_rate", report.plan.flops / median, "FLOP/s");
    add("data_wait", waited, "s");
    // A quality that was asked for and not reached has no time to it.
    if (!settings_.until || reached_) add("time_to_solution", seconds_before_ + elapsed, "s");
    add("compile_time", report.plan.compile_seconds, "s");
    if (world_.size() == 1) return;
    add("communication_time", quantile(exchange_.communication(), 0.5), "s");
    add("exposed_communication_time", quantile(exchange_.exposed(), 0.5), "s");
    add("waiting_time", quantile(exchange_.waiting(), 0.5), "s");
    add("gradient_bytes", exchange_.bytes(), "B");
  }

  Communicator& world_ = communicator();
  Model model_;
  TrainSettings settings_;  // with every default filled in
  TrainOptions options_;
  TrainObserver nobody_;
  TrainObserver& observer_ = options_.observer && world_.rank() == 0 ? *options_.observer : nobody_;
  GradientExchange exchange_{world_, {.mode = options_.exchange, .span = settings_.batch_norm_span}};
  ThreadPool pool_;
  std::unique_ptr<Task> task_;
  std::int64_t batches_, scheduled_steps_ = 0, last_step_ = 0;
  std::unique_ptr<target::Executable> executable_;
  std::optional<Evaluator> evaluator_;
  std::vector<Tensor> prototypes_, outputs_;
  std::optional<RunDirectory> directory_;
  std::string tuning_;  // what the search found, for people

  std::int64_t step_ = 0, epoch_steps_ = 0, epoch_timed_steps_ = 0;
  double loss_ = 0, epoch_loss_ = 0, epoch_seconds_ = 0, seconds_before_ = 0;
  std::optional<double> best_;
  bool reached_ = false;
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
