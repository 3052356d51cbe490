// superstep train WORKLOAD: trains a model, with checkpoints, a log and a report.
#include "superstep/run/train/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/option_range.h"
#include "superstep/base/text.h"
#include "superstep/cli/call/config_file.h"
#include "superstep/cli/command.h"
#include "superstep/cli/numerics/numerics_options.h"
#include "superstep/cli/shared/explain.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/metrics.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/cli/shared/quality.h"
#include "superstep/cli/shared/run_folder.h"
#include "superstep/cli/train/declare.h"
#include "superstep/cli/train/folded.h"
#include "superstep/cli/train/rehearsal.h"
#include "superstep/file/source/paths.h"
#include "superstep/lab/formats/training_log.h"
#include "superstep/lab/profile/explain.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/train/folds.h"
#include "superstep/run/train/train_resume.h"
#include "superstep/target/pjrt/pjrt.h"

namespace superstep::cli {
namespace {

struct Arguments {
  run::TrainSettings settings;
  std::string out, resume, until, mllog;
  std::vector<std::string> data, validation;
  double checkpoint_seconds = 30;
  std::string memory_limit, data_memory;
  int data_threads = 0;
  std::vector<std::string> given;  // options of the command line, by name
  std::string exchange = "overlapped";
  std::string validate, shard;
  std::string config;   // file of options
  std::string repeats;  // and what repeats this call, as such a file
  bool dry_run = false;
  bool no_augment = false, explain = false, tune = false, no_out = false;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep train braggnn --data peaks.h5 --epochs 20 --out run/\n"
    "  superstep train braggnn --samples 20000 --until error_px_mean=0.05\n"
    "  superstep train braggnn --resume run/          after Ctrl-C, a crash or a power cut\n"
    "  superstep train braggnn --resume run/ --epochs 40      further than was planned\n"
    "  superstep train mlp --steps 500 --batch 1024 --no-out --explain\n"
    "  superstep train braggnn --data peaks.h5 --folds 5       cross validation: five trainings and their "
    "mean\n"
    "  superstep train braggnn --data peaks.h5 --dry-run      how long it would take, and how much memory\n"
    "  superstep train --config run/run.toml --seed 1          the same run with another seed\n"
    "  superstep train model.onnx --loss mse --data pairs.h5 --optimizer adam --out run/    a model of your "
    "own\n"
    "  superstep train model.onnx --data pairs.h5 --schedule cosine:warm_up=2 --patience 10 --ema 0.999\n"
    "A run that was stopped and resumed ends with the same weights as one that never was.";

bool was_given(const std::vector<std::string>& given, const char* option) {
  return std::ranges::find(given, option) != given.end();
}

bool is_on_devices(const run::TrainSettings& settings) {
  return target::pjrt::find_device_target(settings.target) != nullptr;
}

// Paths are kept as they were given.
void require_data_of(const std::filesystem::path& data, const std::string& folder) {
  if (data.empty() || data::are_there(data)) return;
  throw Error(ErrorCode::not_found, fmt::format("the data of the run in {} are not there", folder),
              data.string(),
              data.is_relative() ? "go on from the folder in which the run was begun: the path starts there"
                                 : "put them back");
}

// Before anything of the run is looked at.
void refuse_of_resumed(const Arguments& arguments) {
  if (arguments.resume.empty()) return;
  for (const auto& [given, option, why] :
       {std::tuple(!arguments.mllog.empty(), "--mllog", "a resumed run cannot have a log of its whole time"),
        {!arguments.out.empty(), "--out", "a resumed run goes on in its own folder"},
        {arguments.no_out, "--no-out", "a resumed run goes on in its own folder"},
        {arguments.tune, "--tune", "a resumed run keeps the micro-batch that it was begun with"}})
    if (given) throw Error(ErrorCode::invalid_argument, why, option, fmt::format("leave {} away", option));
}

// A new run's options, for one that goes on.
void complete_resumed(Arguments& arguments) {
  const run::TrainSettings asked = arguments.settings;
  const run::TrainSettings kept = run::settings_kept_in(arguments.resume);
  if (kept.workload != asked.workload)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("is a run of '{}', not of '{}'", kept.workload, asked.workload),
                arguments.resume);
  run::refuse_changes(kept, asked, arguments.given, arguments.resume);
  if (run::holds_folds(arguments.resume)) refuse_further_folds(arguments.given, arguments.resume);
  require_data_of(kept.data, arguments.resume);
  require_data_of(kept.validation, arguments.resume);
  run::Extension extension{.epochs = {},
                           .steps = {},
                           .until = asked.until,
                           .replicas = {},
                           .devices = {},
                           .stop_after = asked.stop_after};
  if (was_given(arguments.given, "--epochs")) extension.epochs = asked.epochs;
  if (was_given(arguments.given, "--steps")) extension.steps = asked.steps;
  const bool replicas_given = was_given(arguments.given, "--replicas"), on_devices = is_on_devices(kept);
  if (on_devices && replicas_given) extension.devices = asked.devices;
  if ((!on_devices && replicas_given) || common().threads > 0) extension.replicas = asked.replicas;
  arguments.settings = run::extended(kept, extension);
  arguments.out = arguments.resume;
  if (common().quiet) return;
  if (kept.epochs != arguments.settings.epochs)
    say("superstep: note: from here on the learning rates are those of {:g} epochs, not of {:g}\n",
        arguments.settings.epochs, kept.epochs);
  if (kept.devices != arguments.settings.devices)
    say("superstep: note: {} devices, not {}: sums may be rounded in another order than before\n",
        arguments.settings.devices, kept.devices);
  if (kept.replicas != arguments.settings.replicas && !on_devices)
    say("superstep: note: {} threads, not {}: sums may be rounded in another order than before\n",
        arguments.settings.replicas, kept.replicas);
}

// The target that the run has, or had when it was begun.
bool trains_on_devices(const Arguments& arguments) {
  if (arguments.resume.empty()) return is_on_devices(arguments.settings);
  return is_on_devices(run::settings_kept_in(arguments.resume));
}

// Behind a plug-in a replica has a device, and the threads beside it are as many as elsewhere.
void settle_replicas(Arguments& arguments) {
  run::TrainSettings& settings = arguments.settings;
  const bool on_devices = trains_on_devices(arguments);
  if (!arguments.shard.empty() && !on_devices)
    throw Error(ErrorCode::unsupported, "parameters are divided among devices behind a plug-in", "--shard",
                "leave it away, or train --on cuda, tpu, ...: superstep list devices");
  settings.divide_parameters = arguments.shard == "parameters";
  if (!on_devices) return;
  settings.devices = std::max(1, settings.replicas);
  if (arguments.resume.empty()) run::require_devices(settings);
  settings.replicas = 0;
}

// What the words of the options say.
void settle(Arguments& arguments) {
  settle_replicas(arguments);
  if (!arguments.memory_limit.empty())
    arguments.settings.memory_limit = number_of_bytes(arguments.memory_limit).value_or(0);
  if (!arguments.data.empty()) arguments.settings.data = data::joined_names(arguments.data);
  if (!arguments.validation.empty()) arguments.settings.validation = data::joined_names(arguments.validation);
  arguments.settings.augment = !arguments.no_augment;
  if (arguments.settings.replicas == 0) arguments.settings.replicas = thread_count();
  if (!arguments.until.empty()) arguments.settings.until = run::parse_until(arguments.until);
}

void complete(Arguments& arguments) {
  refuse_of_resumed(arguments);
  settle(arguments);
  if (!arguments.resume.empty())
    complete_resumed(arguments);
  else if (arguments.out.empty() && !arguments.no_out && !arguments.dry_run)
    arguments.out = new_run_folder(arguments.settings.workload);
}

void print_report(const Arguments& arguments, const run::TrainReport& report,
                  const std::optional<run::Quality>& quality) {
  fmt::print("{}: {} steps, {:.4g} epochs, batch {} in micro-batches of {}, {}\n",
             arguments.settings.workload, format_count(static_cast<double>(report.steps)), report.epochs,
             report.plan.batch, report.plan.micro_batch, workers_of(report.plan));
  if (!arguments.settings.recipe.empty()) fmt::print("recipe {}\n", report.recipe);
  if (arguments.settings.gradient != "reverse") fmt::print("gradient {}\n", arguments.settings.gradient);
  // Where samples are packs of several things: how full they are.
  for (const nlohmann::json& packing : report.task.value("packing", nlohmann::json::array()))
    fmt::print("{}\n", packing.get<std::string>());
  if (arguments.settings.until)
    fmt::print("target {}: {}\n", report.goal, report.reached ? "reached" : "not reached");
  if (report.gave_up > 0) fmt::print("ended early: {} epochs without a gain\n", report.gave_up);
  fmt::print("{}", metrics_table(report.metrics));
  print_quality(quality);
  if (!arguments.out.empty())
    fmt::print("written to {}: the model is {}\n", arguments.out,
               (std::filesystem::path(arguments.out) / "model.onnx").string());
}

// Of several ranks the first keeps the log.
std::unique_ptr<lab::TrainingLog> open_log(const Arguments& arguments) {
  if (arguments.mllog.empty() || run::launched_rank() > 0) return nullptr;
  return std::make_unique<lab::TrainingLog>(arguments.mllog, arguments.settings.workload,
                                            run::launched_size());
}

// The threads are those of this machine, where nobody named them: other numbers round otherwise.
void keep_repeats(const Arguments& arguments) {
  if (arguments.out.empty() || !arguments.resume.empty()) return;
  std::string text =
      "# superstep train --config run.toml, in the folder that paths start from\n" + arguments.repeats;
  if (!was_given(arguments.given, "--replicas") && !was_given(arguments.given, "--threads"))
    text += fmt::format("threads = {}\n", arguments.settings.replicas);
  write_file_atomically(std::filesystem::path(arguments.out) / "run.toml", text);
}

// Before the first step, when nothing is wrong with the call: where the run is kept that nobody named, and
// the plan, whose reader may stop here. Standard output may be a pipe.
void tell_beginning(const Arguments& arguments, const target::PlanSummary& plan) {
  if (run::launched_rank() > 0) return;
  keep_repeats(arguments);
  // What it says at the end says it in any case.
  const bool tells = !common().quiet && common().progress != "none";
  if (tells && !arguments.no_out && !arguments.dry_run && !was_given(arguments.given, "--out") &&
      arguments.resume.empty())
    say("superstep: the run is kept in {} (--no-out keeps nothing)\n", arguments.out);
  if (!arguments.explain) return;
  fmt::print("the plan\n{}\n", explain(plan));
  std::fflush(stdout);
}

run::TrainOptions options_of(const Arguments& arguments, run::TrainObserver* log) {
  return {.out = arguments.out,
          .resume = !arguments.resume.empty(),
          .checkpoint_seconds = arguments.checkpoint_seconds,
          .measure_steps = arguments.explain,
          .tune = arguments.tune,
          .observer = log,
          .exchange = run::exchange_mode_from_name(arguments.exchange),
          .validate = arguments.validate,
          .data_memory = static_cast<double>(number_of_bytes(arguments.data_memory).value_or(0)),
          .data_threads = arguments.data_threads,
          .tell =
              [](const std::string& line) {
                if (!common().quiet) say("superstep: {}\n", line);
              },
          .planned = [&arguments](const target::PlanSummary& plan) { tell_beginning(arguments, plan); }};
}

void train(Arguments arguments) {
  complete(arguments);
  if (arguments.dry_run) return rehearse(arguments.settings, options_of(arguments, nullptr));
  const bool one_of_folds = arguments.settings.fold > 0;
  if (arguments.settings.folds > 0 && !one_of_folds)
    return train_folded(arguments.settings, options_of(arguments, nullptr));
  const std::unique_ptr<lab::TrainingLog> log = open_log(arguments);
  const run::TrainReport report = run::train(arguments.settings, options_of(arguments, log.get()));
  const std::optional<run::Quality> quality =
      judge_training(arguments.settings.workload, report, arguments.out);
  if (!common().quiet) print_report(arguments, report, quality);
  if (arguments.explain && lab::is_timed(report.plan))
    fmt::print("\nthe steps as they took\n{}", explain(report.plan));
  nlohmann::json config = run::to_json(arguments.settings);
  config["recipe"] = report.recipe.substr(0, report.recipe.find(':'));
  config["plan"] = {{"batch", report.plan.batch}, {"micro_batch", report.plan.micro_batch}};
  config["task"] = report.task;
  record::Result result = command_result("train", arguments.settings.workload, std::move(config),
                                         report.metrics, arguments.settings.target);
  result.mode = "train";
  result.folder = arguments.out;
  keep_and_write_result(std::move(result));
}

void declare_lengths(CLI::App& command, Arguments& arguments) {
  run::TrainSettings& settings = arguments.settings;
  command.add_option("--epochs", settings.epochs, "passes over the data, and length of the schedule")
      ->type_name("N")
      ->check(positive());
  command.add_option("--steps", settings.steps, "stop after so many steps")
      ->type_name("N")
      ->check(positive());
  command
      .add_option("--stop-after", settings.stop_after,
                  "stop after so many epochs of the schedule; --resume goes on with the rest of it")
      ->type_name("EPOCHS")
      ->check(positive());
  command
      .add_option("--until", arguments.until,
                  "stop when a quality is VALUE or better: error_px_mean=0.04 is <=, r2=0.7 is >=")
      ->type_name("METRIC=VALUE");
  command.add_option("--samples", settings.samples, "use so many samples")->type_name("N")->check(positive());
  command
      .add_option(
          "--folds", settings.folds,
          "cross validation: so many trainings, each without another part of the data, and their mean")
      ->type_name("N")
      ->check(CLI::Range(2, 1000));
}

void declare_plan(CLI::App& command, Arguments& arguments) {
  run::TrainSettings& settings = arguments.settings;
  command.add_option("--batch", settings.batch, "samples per step")->type_name("N")->check(positive());
  command
      .add_option("--micro-batch", settings.micro_batch,
                  "samples through the model at a time (default: chosen to stay in cache)")
      ->type_name("N")
      ->check(positive());
  command
      .add_option("--replicas", settings.replicas,
                  "copies of the model: a thread each (default: --threads), or a device each (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--shard", arguments.shard,
                  "parameters: each device keeps a part of the parameters and moments, not all")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"parameters"}));
  command.add_flag("--tune", arguments.tune,
                   "choose micro-batch and threads by a short timed search, remembered for the next time");
  command
      .add_option("--memory-limit", arguments.memory_limit,
                  "bytes the plan may take: 200M, 2G; smaller micro-batches, then recomputation")
      ->type_name("BYTES")
      ->check(bytes());
}

void declare_model(CLI::App& command, run::TrainSettings& settings) {
  command.add_option("--on", settings.target, "where to train: superstep list targets")
      ->type_name("TARGET")
      ->capture_default_str();
  add_numerics_options(command, settings.target);
  command
      .add_option("--precision", settings.precision,
                  "f32, or products on bf16 or f16 with f32 master weights")
      ->type_name("TYPE")
      ->capture_default_str();
  command
      .add_option("--loss-scale", settings.loss_scale,
                  "f16: what the loss is multiplied by: dynamic, dynamic:1024, or 1024 (default: dynamic)")
      ->type_name("SCALE");
  command
      .add_option("--recipe", settings.recipe,
                  "quick, or published as its authors trained it: superstep list recipes; other options "
                  "override it")
      ->type_name("NAME");
  command
      .add_option(
          "--optimizer", settings.optimizer,
          "sgd, adam, adamw, adamax, rmsprop or lamb, with constants: adamw:weight_decay=0.01,beta2=0.95")
      ->type_name("NAME[:NAME=X,...]");
  add_loss_option(command, settings.loss);
  command
      .add_option(
          "--metrics", settings.metrics,
          "what a model file is judged by: r2,mae, f1:mask ... (docs/losses.md; default: those of its loss)")
      ->type_name("NAME,...");
  add_bound_option(command, settings.bounds);
  add_operators_option(command);
  add_shape_option(command, settings.shapes);
  add_train_option(command, settings.train);
  add_freeze_option(command, settings.freeze);
  command
      .add_option("--weights", settings.weights,
                  "begin with the weights of this run, or of others (safetensors, PyTorch, GGUF)")
      ->type_name("PATH");
}

void declare_schedule(CLI::App& command, run::TrainSettings& settings) {
  command.add_option("--learning-rate", settings.learning_rate, "the peak of the schedule")
      ->type_name("X")
      ->check(positive());
  command
      .add_option(
          "--schedule", settings.schedule,
          "learning rate over the run: cosine:warm_up=5, stairs:period=30 ... (docs/your-own-model.md)")
      ->type_name("KIND[:NAME=X,...]");
  command
      .add_option("--patience", settings.patience,
                  "end after so many epochs in which the watched metric did not become better")
      ->type_name("EPOCHS")
      ->check(CLI::Range(1, 1000000));
  command
      .add_option(
          "--monitor", settings.monitor,
          "metric that --patience and plateaus watch, and the best weights are kept by (default: the first)")
      ->type_name("METRIC");
  command
      .add_option(
          "--ema", settings.average,
          "average weights over the steps with this decay, 0.999; the averages validate and are served")
      ->type_name("DECAY")
      ->check(positive());
}

void declare_gradient_and_options(CLI::App& command, run::TrainSettings& settings) {
  command
      .add_option("--gradient", settings.gradient,
                  "reverse, forward:K (K random directions, no activations kept), mixed:LAYER,... or "
                  "mixed:K:LAYER,...")
      ->type_name("MODE")
      ->capture_default_str();
  command.add_flag("--gradient-norms", settings.gradient_norms,
                   "log the length of all gradients together, and of each parameter's, epoch by epoch");
  command.add_option("--seed", settings.seed, "seed of weights, order and augmentation")
      ->type_name("N")
      ->check(whole_number_from(0))
      ->capture_default_str();
  add_set_option(command, settings.model_options);
}

void declare_records_and_ranks(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--checkpoint-seconds", arguments.checkpoint_seconds, "between checkpoints within an epoch")
      ->type_name("S")
      ->check(not_negative())
      ->capture_default_str();
  command
      .add_option("--mllog", arguments.mllog,
                  "log of the run as :::MLLOG lines (not a result verified by MLCommons)")
      ->type_name("FILE");
  command
      .add_option("--batch-norm-span", arguments.settings.batch_norm_span,
                  "ranks whose batches are normalized together (neighbors of one another)")
      ->type_name("RANKS")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      .add_option("--exchange", arguments.exchange,
                  "when ranks exchange gradients: overlapped with the backward pass, after it, or library "
                  "(MPI's own)")
      ->type_name("WAY")
      ->capture_default_str();
}

void declare_data(CLI::App& command, Arguments& arguments) {
  add_data_option(command, "--data", arguments.data,
                  "files, folders, patterns, @LIST, NAME=PATH:ARRAY (docs/your-data.md); default: generated");
  add_data_option(
      command, "--validation", arguments.validation,
      "samples to validate on, in the same forms; all of --data trains then (default: a part of it)");
  add_skip_broken_option(command, arguments.settings.skip_broken);
  add_crop_option(command, arguments.settings.crop);
  add_scale_options(command, arguments.settings.scale, arguments.settings.offset);
  add_repeated(command, "--augment", arguments.settings.augmentation,
               "draw arrays of a model file anew each epoch: x,mask=flip-horizontal (docs/your-data.md)",
               "ARRAYS=STEP");
  add_tokenizer_option(command, arguments.settings.tokenizer);
  command
      .add_option(
          "--data-memory", arguments.data_memory,
          "memory for samples; more are read while they are trained on (default: a quarter of what is free)")
      ->type_name("BYTES")
      ->check(bytes());
  command
      .add_option("--data-threads", arguments.data_threads,
                  "threads that make batches ahead (default: chosen)")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  command.add_flag("--allow-nan", arguments.settings.allow_nan,
                   "train a model file on arrays that hold NaN or infinity");
  command
      .add_option(
          "--validate", arguments.validate,
          "samples to judge by: a number, a share (0.1, 10%) or all (default: 10000 at most; --until: all)")
      ->type_name("N|SHARE|all");
}

void declare_folder(CLI::App& command, Arguments& arguments) {
  auto* out = command.add_option("--out", arguments.out,
                                 "the run's folder: configuration, log, checkpoints, model (default: "
                                 "runs/NAME-DATE here)");
  out->type_name("DIR");
  command.add_flag("--no-out", arguments.no_out, "keep nothing of the run")->excludes(out);
  command
      .add_option(
          "--resume", arguments.resume,
          "go on with the run in this folder, or further: with more --epochs or --steps, another --until")
      ->type_name("DIR");
}

// What another target, or a training for each fold, decides.
void refuse_ignored(const CLI::App& command, const Arguments& arguments) {
  refuse_given(command, arguments.settings.folds > 0 ? "is of one training, and --folds makes several" : "",
               {"--mllog", "--explain", "--dry-run"});
  const run::TrainSettings& settings = arguments.settings;
  refuse_given(command, settings.target == "cpu" ? "" : "is of plans for --on cpu",
               {"--tune", "--memory-limit"});
}

}  // namespace

std::function<run::TrainSettings()> declare_training(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  arguments->settings.replicas = 0;
  command
      .add_option("workload", arguments->settings.workload,
                  "what to train: superstep list workloads, or a model file (.onnx)")
      ->required();
  declare_data(command, *arguments);
  declare_folder(command, *arguments);
  declare_lengths(command, *arguments);
  declare_plan(command, *arguments);
  declare_model(command, arguments->settings);
  declare_schedule(command, arguments->settings);
  declare_gradient_and_options(command, arguments->settings);
  declare_records_and_ranks(command, *arguments);
  command.add_flag("--explain", arguments->explain,
                   "print the plan: each step, its kernel and why faster ones refused");
  add_config_option(command, arguments->config);
  auto* dry_run = command.add_flag("--dry-run", arguments->dry_run,
                                   "train for three seconds, keep nothing, and say what the run would take");
  for (const char* const other : {"--out", "--resume", "--mllog", "--explain", "--tune"})
    if (auto* const excluded = command.get_option_no_throw(other)) dry_run->excludes(excluded);
  command.add_flag("--no-augment", arguments->no_augment, "train on the samples as they are")
      ->excludes(command.get_option("--augment"));
  command.footer(examples);
  // The options live as long as the command, whose callback superstep search replaces.
  command.preparse_callback([arguments](std::size_t) {});
  command.callback([arguments, &command] {
    for (const CLI::Option* const option : command.get_options())
      if (option->count() > 0) arguments->given.push_back(option->get_name());
    refuse_ignored(command, *arguments);
    arguments->repeats = config_text(
        command, {"--out", "--no-out", "--json", "--quiet", "--progress", "--explain", "--mllog"});
    train(*arguments);
  });
  return [arguments] {
    Arguments settled = *arguments;
    settle(settled);
    return settled.settings;
  };
}

void declare_train(CLI::App& command) { declare_training(command); }

}  // namespace superstep::cli
