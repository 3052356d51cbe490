// superstep predict WORKLOAD --on MACHINE: does it fit, how fast, and how sure is that.
#include "superstep/machine/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/predict/arguments.h"
#include "superstep/cli/predict/by_law.h"
#include "superstep/cli/predict/on_processor.h"
#include "superstep/cli/predict/prediction_config.h"
#include "superstep/cli/predict/prediction_words.h"
#include "superstep/cli/predict/primitive.h"
#include "superstep/cli/shared/chip_options.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/input_type.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/lab/by_law.h"
#include "superstep/lab/graphs_by_batch.h"
#include "superstep/lab/processor/prediction.h"
#include "superstep/lab/question.h"
#include "superstep/machine/configuration/resolve.h"
#include "superstep/machine/ipu/convolution.h"
#include "superstep/machine/ipu/kept_plans.h"
#include "superstep/op/core/definition.h"
#include "superstep/run/model.h"
#include "superstep/run/user/user_model.h"
#include "superstep/target/target.h"

namespace superstep::cli {
namespace {

using Arguments = PredictArguments;

constexpr const char* footer =
    "Every figure is a prediction, with the interval that holds 80 % of what it is unsure of.\n"
    "Precision: f32, tf32, f16 (f32 sums), bf16, mixed (f32 weights), 16.16 (f16 sums too).\n"
    "Examples:\n"
    "  superstep predict braggnn --on gc200 --micro-batch 512 --explain\n"
    "  superstep predict resnet50 --on bow --micro-batch 16 --precision 16.16 --replicas 16 --accumulate 8\n"
    "  superstep predict gemm_k4 --on gc200 --explain\n"
    "  superstep predict allreduce-64.5M --on a100-40gb --units 16\n"
    "  superstep predict llm:llama-3-8b --on h100 --stack vllm --tokens-in 1024 --tokens-out 256 "
    "--concurrency 32\n"
    "  superstep predict timm/resnet50d@224 --on b200 --stack pytorch --batch 256\n"
    "  superstep predict braggnn --on cpu --batch 512 --threads 2\n"
    "  superstep predict unet-256 --on gc200 --micro-batch 1 --pipeline auto --units 4 --accumulate 16\n"
    "  superstep predict braggnn --on a100-40gb --precision tf32 --stack pytorch-eager --provenance\n"
    "  superstep predict resnet50 --on bow --precision 16.16 --micro-batch 20 --recompute --accumulate 4 "
    "--replicas 256 --scaling weak";

run::Model model_of(const Arguments& arguments) {
  return run::Model(lab::as_workload({.workload = arguments.workload,
                                      .model_options = arguments.settings,
                                      .shapes = arguments.shapes,
                                      .bounds = arguments.bounds}));
}

std::string seconds_with_share(double seconds, double total) {
  return fmt::format("{} ({:.0f} %)", format_seconds(seconds), 100 * seconds / total);
}

void print_memory(const machine::Prediction& prediction) {
  TextTable table(
      {"stage", "parameters", "optimizer", "code", "activations", "temporary", "in all", "has", "fits"});
  for (std::size_t s = 0; s < prediction.stages.size(); ++s) {
    const machine::Memory& memory = prediction.stages[s].memory;
    table.add_row({fmt::format("{}", s + 1), format_bytes(memory.parameters), format_bytes(memory.optimizer),
                   format_bytes(memory.code), format_bytes(memory.activations),
                   format_bytes(memory.temporary), format_bytes(memory.total()), format_bytes(memory.limit),
                   memory.fits() ? "yes" : "no"});
  }
  fmt::print("peak memory per device\n{}", table.to_string());
  for (const machine::Stage& stage : prediction.stages)
    if (stage.memory.tile_limit > 0)
      fmt::print("fullest tile: {} of {}, at '{}'\n", format_bytes(stage.memory.fullest_tile),
                 format_bytes(stage.memory.tile_limit), stage.memory.fullest);
}

void print_largest_values(const machine::Prediction& prediction) {
  for (const machine::Stage& stage : prediction.stages) {
    if (stage.memory.fits()) continue;
    fmt::print("largest values alive then:\n");
    for (const machine::NamedBytes& value : stage.memory.largest)
      fmt::print("  {}  {}\n", value.name, format_bytes(value.bytes));
  }
}

void print_parts(const machine::Prediction& prediction) {
  const machine::Parts& p = prediction.step;
  const std::pair<const char*, double> parts[] = {
      {"compute", p.compute}, {"local memory", p.memory},   {"exchange", p.exchange}, {"sync", p.sync},
      {"launch", p.launch},   {"collective", p.collective}, {"fill", p.fill},         {"host", p.host}};
  std::vector<std::string> words;
  for (const auto& [name, seconds] : parts)
    if (seconds > 0) words.push_back(fmt::format("{} {}", name, seconds_with_share(seconds, p.total())));
  fmt::print("  of which: {}\n  bound by {}\n", join(words, ", "), prediction.bound_by());
}

// The cut of a step, and where each fact of it that the call did not say comes from.
void print_configuration(const Arguments& arguments, const machine::Machine& machine,
                         const machine::Answer& found) {
  const machine::PredictSettings& settings = found.configuration.settings;
  fmt::print("predicted: {} ({}) on {} x {}, {}, micro-batch {} x {} accumulated x {} replicas{}\n",
             arguments.workload, arguments.mode, found.prediction.units, machine.name(),
             settings.precision.name, settings.micro_batch, settings.accumulate, settings.replicas,
             settings.recompute ? ", recomputed" : "");
  if (!settings.pipeline.empty()) {
    std::vector<std::string> shares;
    for (int share : settings.pipeline) shares.push_back(fmt::format("{}", share));
    fmt::print("pipeline of {} stages, layers {}\n", shares.size(), join(shares, ","));
  }
  for (const std::string& words : machine::words_of(found.configuration.facts)) fmt::print("  {}\n", words);
  if (found.plausible > 1)
    fmt::print("  the median of {} plausible configurations; the intervals hold all of them\n",
               found.plausible);
}

// The law or the model, why it was that one, and what it rests on.
void print_what_timed_it(const Arguments& arguments, const machine::Machine& machine,
                         const machine::Prediction& prediction) {
  if (const auto& law = prediction.by_law)
    fmt::print(
        "law: {}, interval of \"{}\", {} cells{}; the model of the machine's file says {}\n", law->law,
        law->spread, law->cells,
        law->measured_machine ? "" : " (no such call on it was measured: its data sheet alone is known)",
        format_seconds(law->model_seconds));
  const bool chosen = !machine.stack();
  const std::string why =
      chosen ? lab::why_by_law(machine, arguments.mode == "train", prediction.by_law.has_value()) : "";
  if (!why.empty()) fmt::print("{}\n", why);
  fmt::print(
      "constants: {}{} (digest {}); {}\n", machine.file(),
      machine.stack() ? ", driven by " + machine.stack()->name : "", machine.digest(),
      prediction.by_law ? "machines/rates, docs/accuracy.md" : machine::cost_model(machine)->calibration());
}

void print_prediction(const Arguments& arguments, const machine::Machine& machine,
                      const machine::Answer& found) {
  const machine::PredictSettings& settings = found.configuration.settings;
  const machine::Prediction& prediction = found.prediction;
  print_configuration(arguments, machine, found);
  if (arguments.explain) {
    fmt::print("{}\n", operators_text(prediction));
    const machine::ipu::PlanCounts plans = machine::ipu::plan_counts();
    if (plans.searched > 0)
      fmt::print("plans of products: {} searched for, {} remembered\n\n", plans.searched, plans.remembered);
  }
  print_memory(prediction);
  if (!prediction.fits) {
    print_largest_values(prediction);
    fmt::print("it does not fit: no time is given. Try {}--recompute, or --pipeline auto --units N\n",
               settings.micro_batch > 1
                   ? "a smaller --micro-batch (--largest finds the largest that fits; --accumulate N keeps "
                     "the samples of a step), "
                   : "");
    if (!found.nearest.empty()) fmt::print("nearest: {}\n", found.nearest);
    return;
  }
  const auto interval = [](double value, double low, double high, const char* unit) {
    return fmt::format("{} ({} to {}, 80 %)", format_si(value, unit), format_si(low, unit),
                       format_si(high, unit));
  };
  const double samples = prediction.samples;
  fmt::print("throughput           {}\n",
             interval(prediction.throughput(), samples / prediction.longest_step(),
                      samples / prediction.shortest_step(), "samples/s"));
  fmt::print("  with host data     {} ({} to {}, 80 %), bound by {}\n",
             format_si(prediction.throughput_with_data(), "samples/s"),
             format_si(prediction.samples / prediction.fed.high, "samples/s"),
             format_si(prediction.samples / prediction.fed.low, "samples/s"),
             prediction.bound_by_with_data());
  fmt::print("step                 {} for {:.0f} samples\n",
             interval(prediction.step_seconds, prediction.shortest_step(), prediction.longest_step(), "s"),
             samples);
  print_parts(prediction);
  fmt::print("host's part of a step: link {}, call {} ({} device iterations per call), loader {} ({})\n",
             format_seconds(prediction.host.link), format_seconds(prediction.host.call),
             settings.device_iterations, format_seconds(prediction.host.loader),
             prediction.host.overlaps ? "all beside the machine's work" : "the loader works ahead");
  fmt::print("ladder: at peak {}, roofline {}, full model {}\n", format_seconds(prediction.peak_seconds),
             format_seconds(prediction.roofline_seconds), format_seconds(prediction.step_seconds));
  print_what_timed_it(arguments, machine, prediction);
  for (const std::string& warning : prediction.warnings) fmt::print("warning: {}\n", warning);
}

void refuse_unsupported(const Arguments& arguments, const machine::Prediction& prediction) {
  if (prediction.unsupported.empty() || arguments.approximate) return;
  throw Error(ErrorCode::unsupported, fmt::format("no cost model for {}", join(prediction.unsupported, ", ")),
              arguments.workload, "--approximate counts them as element-wise work");
}

machine::Machine machine_of(const Arguments& arguments) {
  const machine::Machine machine = machine::find_machine(arguments.machine);
  return arguments.stack.empty() ? machine : machine.driven_by(arguments.stack);
}

void refuse_extrapolation(const Arguments& arguments, const machine::Prediction& prediction) {
  if (prediction.beyond.empty() || arguments.extrapolate) return;
  throw Error(ErrorCode::unsupported, join(prediction.beyond, "; "), arguments.workload,
              "--extrapolate predicts it all the same");
}

// Weak or strong scaling up to the replicas asked for.
void print_scaling(const Arguments& arguments, const machine::Machine& machine,
                   const target::GraphAtBatch& graph_at, machine::PredictSettings settings) {
  const int most = settings.replicas;
  settings.replicas = 1;
  Progress progress = Progress::passing("scaling", most, "replicas");
  const auto points =
      machine::scaling_of(machine, graph_at, settings, most,
                          arguments.scaling == "weak" ? machine::Scaling::weak : machine::Scaling::strong,
                          [&](const machine::ScalingPoint& point) { progress.update(point.replicas); });
  progress.finish();
  if (!common().quiet)
    fmt::print("\n{} scaling (predicted, with host data)\n{}", arguments.scaling, scaling_text(points));
}

// What the call says; the rest is the resolver's to find.
machine::Question asked(const Arguments& arguments, const machine::Machine& machine,
                        const run::Model& model) {
  machine::Question question = lab::question_of(model, arguments.mode == "train");
  if (machine.stack()) question.software = machine.stack()->name;
  question.sample_seconds = arguments.sample_seconds;
  machine::Stated& stated = question.stated;
  stated.precision = arguments.precision;
  stated.micro_batch = arguments.micro_batch;
  const auto said = [&](const char* option, int value) {
    return arguments.said.contains(option) ? value : 0;
  };
  const target::Chips chips = chips_of(arguments.chips);
  stated.accumulate = said("--accumulate", chips.accumulate);
  stated.replicas = said("--replicas", chips.replicas);
  stated.device_iterations = said("--device-iterations", arguments.device_iterations);
  stated.loaders = said("--loaders", arguments.loaders);
  stated.pipeline = chips.pipeline;
  stated.stages = chips.pipeline.empty() ? std::max(0, chips.stages > 1 ? chips.stages : 0)
                                         : static_cast<int>(chips.pipeline.size());
  stated.units =
      arguments.chips.units > 0 ? arguments.chips.units : stated.stages * std::max(1, chips.replicas);
  if (arguments.recompute) stated.recompute = true;
  stated.input_bytes = input_bytes_of(arguments.input_type);
  return question;
}

// Options of machines that are modelled, beside a processor whose plan is predicted, and of the other mode.
void refuse_ignored(const CLI::App& command, const Arguments& given, bool processor) {
  refuse_given(
      command, processor ? "is an option of modeled machines, and the plan of a processor is predicted" : "",
      {"--stack", "--accumulate", "--replicas", "--pipeline", "--units", "--device-iterations", "--loaders",
       "--sample-seconds", "--input-type", "--recompute", "--largest", "--scaling", "--approximate"});
  refuse_given(command,
               given.mode == "infer" ? "is an option of training: samples that are served are in memory" : "",
               {"--loaders", "--sample-seconds"});
  refuse_given(command, !processor && given.micro_batch > 0 ? "says the same as --micro-batch" : "",
               {"--batch"});
}

// A primitive is asked for forward alone, unless the call says --mode train.
void predict_by_name(const Arguments& given, const CLI::App& command) {
  const std::int64_t batch = given.micro_batch > 0 ? given.micro_batch : given.batch;
  refuse_given(command, given.micro_batch > 0 ? "says the same as --micro-batch" : "", {"--batch"});
  if (given.machine == "cpu")
    throw Error(ErrorCode::unsupported, "a processor's kernels are measured", given.workload,
                "superstep bench gemm|conv|relu|lstm|all-reduce");
  predict_primitive(command, machine_of(given),
                    {.question = {.name = given.workload,
                                  .passes = command.count("--mode") > 0 ? lab::passes_named(given.mode)
                                                                        : lab::Passes::forward,
                                  .precision = given.precision,
                                  .batch = batch,
                                  .units = given.chips.units},
                     .explain = given.explain,
                     .provenance = given.provenance,
                     .extrapolate = given.extrapolate});
}

bool is_primitive(const std::string& name) {
  return lab::names_primitive(name) || lab::names_collective(name);
}

// What a call that is answered by laws of few constants asks.
LawQuestion law_question(const Arguments& given, const CLI::App& command) {
  return {.workload = given.workload,
          .machine = given.machine,
          .stack = given.stack,
          .precision = given.precision,
          .training = command.count("--mode") > 0 && given.mode != "infer",
          .batch = given.micro_batch > 0 ? given.micro_batch : given.batch,
          .units = given.chips.units,
          .language = given.language};
}

void predict(const Arguments& given, const CLI::App& command) {
  if (given.mode == "backward" && (!is_primitive(given.workload) || run::is_model_file(given.workload)))
    throw Error(ErrorCode::invalid_argument,
                "is of gemm and conv: the gradients of a model need its forward pass", "--mode backward",
                "--mode train predicts both");
  const LawQuestion question = law_question(given, command);
  if (!run::is_model_file(given.workload) && law_answers(command, question))
    return predict_by_law(command, question);
  refuse_given(command, "is of language models: llm:NAME",
               {"--tokens-in", "--tokens-out", "--concurrency", "--tensor-parallel", "--pipeline-parallel"});
  if (is_primitive(given.workload) && !run::is_model_file(given.workload))
    return predict_by_name(given, command);
  if (given.machine == "cpu") refuse_ignored(command, given, true);
  if (given.machine == "cpu")
    return predict_processor(given, lab::this_computer(thread_count(), [](const std::string& what) {
                               if (!common().quiet) tell(what + "\n");
                             }));
  const machine::Machine as_filed = machine_of(given);
  refuse_ignored(command, given, as_filed.processor().has_value());
  if (as_filed.processor()) return predict_processor(given, as_filed);
  if (given.measure > 0)
    throw Error(ErrorCode::invalid_argument, "only this computer can be measured", "--measure",
                "--on cpu, or a file of superstep machine measure");
  const machine::ipu::KeptPlans kept;
  Arguments arguments = given;
  if (arguments.micro_batch == 0) arguments.micro_batch = arguments.batch;
  const run::Model model = model_of(arguments);
  const bool training = arguments.mode == "train";
  lab::GraphsByBatch graphs(model, training);
  const machine::Machine machine = lab::ModelByLaw(model, training).on(as_filed);
  const machine::Answer found =
      machine::answer(machine, asked(arguments, machine, model),
                      [&](std::int64_t batch) -> const graph::Graph& { return graphs.at(batch); });
  const machine::PredictSettings& settings = found.configuration.settings;
  const machine::Prediction& prediction = found.prediction;
  refuse_unsupported(arguments, prediction);
  refuse_extrapolation(arguments, prediction);
  std::vector<Metric> metrics = prediction.metrics();
  if (!common().quiet) print_prediction(arguments, machine, found);
  const target::GraphAtBatch graph_at = training ? model.training_step() : model.inference();
  if (arguments.largest) {
    const auto most = machine::largest_micro_batch(machine, graph_at, settings, 65536);
    metrics.push_back(
        {.name = "max_micro_batch", .value = static_cast<double>(most), .unit = "", .how = How::predicted});
    if (!common().quiet) fmt::print("largest micro-batch that fits: {} (predicted)\n", most);
  }
  if (!arguments.scaling.empty()) print_scaling(arguments, machine, graph_at, settings);
  if (arguments.provenance && !common().quiet) fmt::print("\n{}", provenance_text(machine));
  write_result(command_result("predict", arguments.workload, config_of(arguments, machine, found), metrics,
                              machine.id()));
}

// What is said beside the prediction, and how far it may go.
void declare_flags(CLI::App& command, const std::shared_ptr<Arguments>& a) {
  command
      .add_option("--measure", a->measure,
                  "run the plan on this processor, too, for so many seconds; with --explain each step")
      ->check(number_from(0, 1e4))
      ->type_name("S");
  command.add_flag("--recompute", a->recompute, "keep checkpoints, run the forward pass again");
  command.add_flag("--largest", a->largest, "find the largest micro-batch that fits");
  command.add_option("--scaling", a->scaling, "weak or strong: a table over 1, 2, 4 ... --replicas")
      ->check(CLI::IsMember({"weak", "strong"}));
  command.add_flag("--provenance", a->provenance, "every constant with its kind, range and source");
  command.add_flag("--extrapolate", a->extrapolate, "predict beyond what the constants were calibrated on");
  command.add_flag("--explain", a->explain, "every kernel, with the plan found for it");
  command.add_flag("--approximate", a->approximate,
                   "count operators without a cost model as element-wise work");
}

}  // namespace

void declare_predict(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  const auto count = CLI::Range(1, 1 << 20);
  command
      .add_option(
          "workload", a->workload,
          "a workload (superstep list workloads), a model file, a primitive: gemm_k1, "
          "gemm_1760x16x1760, conv_k1, relu_k1, rnn_k1, allreduce-64.5M; llm:NAME, or a network of pictures: "
          "timm/NAME@SIZE")
      ->required();
  command
      .add_option("--on", a->machine,
                  "a machine (superstep list machines), a machine file, or cpu: this computer")
      ->type_name("MACHINE")
      ->capture_default_str();
  command
      .add_option("--stack", a->stack,
                  "the software that drives it, as the machine file names it: pytorch-eager, tensorflow, ...")
      ->type_name("NAME");
  command.add_option("--mode", a->mode, "train or infer; of a product or a convolution backward, too")
      ->check(CLI::IsMember({"train", "infer", "backward"}))
      ->capture_default_str();
  command.add_option("--micro-batch", a->micro_batch, "samples that a unit takes at a time")
      ->check(count)
      ->type_name("N");
  command
      .add_option("--batch", a->batch,
                  "samples per step of a processor, whose plan cuts them into micro-batches itself")
      ->check(count)
      ->type_name("N");
  command.add_option(
      "--precision", a->precision,
      "type of data, sums, weights (default: a public set-up's, else f16; processors: f32, int8 too)");
  add_chip_options(command, a->chips);
  command.add_option("--device-iterations", a->device_iterations, "steps a call of the program")
      ->check(count)
      ->capture_default_str();
  command.add_option("--loaders", a->loaders, "processes of the host that prepare a replica's samples")
      ->check(count)
      ->capture_default_str();
  command
      .add_option("--sample-seconds", a->sample_seconds,
                  "a loader's time for a sample beside the machine's constants: decoding")
      ->check(number_from(0, 1e3))
      ->type_name("S");
  add_language_options(command, a->language);
  add_input_type_option(command, a->input_type);
  add_shape_option(command, a->shapes);
  add_bound_option(command, a->bounds);
  add_operators_option(command);
  declare_flags(command, a);
  add_set_option(command, a->settings);
  command.footer(footer);
  command.callback([a, &command] {
    for (const char* option : {"--accumulate", "--replicas", "--device-iterations", "--loaders"})
      if (command.count(option) > 0) a->said.insert(option);
    predict(*a, command);
  });
}

}  // namespace superstep::cli
