// superstep infer WORKLOAD: a trained model applied to a file.
#include "superstep/run/serve/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/numerics/numerics_options.h"
#include "superstep/cli/shared/chip_options.h"
#include "superstep/cli/shared/explain.h"
#include "superstep/cli/shared/metrics.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/file/source/paths.h"
#include "superstep/run/serve/length_plans.h"

namespace superstep::cli {
namespace {

struct Arguments {
  run::InferSettings settings;
  std::string weights, input, output, onnx, lengths;
  std::vector<std::string> inputs;  // of which `input` is made
  ChipArguments chips;
  bool explain = false, allow_not_finite = false;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep infer braggnn --weights run/ --input peaks.h5 --output positions.h5\n"
    "  superstep infer braggnn --weights run/ --batch 1 --threads 1      how long one patch takes\n"
    "  superstep infer model.onnx --input x.npy --batch 4 --output y.npz    a model of your own\n"
    "  superstep infer model.onnx --shape image=-1,3,224,224               its speed, on random data\n"
    "  superstep infer braggnn --weights run/ --precision int8 --calibrate 1024    beside f32\n"
    "  superstep infer autophasenn --weights run/ --input crystals.h5 --refine 100 --output refined.h5\n"
    "  superstep infer braggnn --on gc200 --pipeline 4,4 --accumulate 8 --batch 16    stage by stage, on two "
    "chips\n"
    "Without --input the workload's data are generated; without --weights the model has its initial\n"
    "weights, which is enough to measure speed.";

// The same samples in f32 and on bytes, a metric a line.
std::string comparison(const run::InferReport& report) {
  TextTable table({"metric", "f32", "int8", "int8 / f32", "unit"});
  for (const Metric& bytes : report.metrics)
    for (const Metric& f32 : report.f32_metrics)
      if (f32.name == bytes.name)
        table.add_row({bytes.name, fmt::format("{:.5g}", f32.value), fmt::format("{:.5g}", bytes.value),
                       f32.value != 0 ? fmt::format("{:.3f}", bytes.value / f32.value) : "", bytes.unit});
  const std::string coarse =
      report.coarse_on_bytes.empty()
          ? ""
          : fmt::format("{} in f32 because bytes would move the outputs too far (--byte-error, --explain)\n",
                        report.coarse_on_bytes.size());
  return fmt::format("{} of {} products on bytes, ranges by {} of {} samples\n{}{}", report.int8_products,
                     report.int8_products + report.f32_products, report.ranges, report.calibration_samples,
                     coarse, table.to_string());
}

// Answers as the model gave them and as they are after their refinement, a metric a line.
std::string refinement(const run::InferReport& report) {
  TextTable table({"metric", "the model", "refined", "refined / the model", "unit"});
  for (const Metric& before : report.metrics_before)
    for (const Metric& after : report.metrics)
      if (after.name == before.name)
        table.add_row({before.name, fmt::format("{:.5g}", before.value), fmt::format("{:.5g}", after.value),
                       before.value != 0 ? fmt::format("{:.3f}", after.value / before.value) : "",
                       before.unit});
  return report.metrics_before.empty() ? "" : "\n" + table.to_string();
}

// The products that could be on bytes and are not, a line each.
std::string left_in_f32(const run::InferReport& report) {
  std::string text;
  for (const run::CoarseOnBytes& product : report.coarse_on_bytes)
    text +=
        fmt::format("'{}' stays in f32: on bytes it alone moves the outputs by {:.2f} % of their spread\n",
                    product.result, 100 * product.error);
  for (const target::SlowOnBytes& product : report.slow_on_bytes)
    text += std::isfinite(product.share)
                ? fmt::format("'{}' stays in {}: on bytes estimated at {:.2f} of its time\n", product.result,
                              product.in_bf16 ? "bf16" : "f32", product.share)
                : fmt::format("'{}' stays in f32: this processor has no fast products of bytes\n",
                              product.result);
  return text;
}

// What was measured of the f32 model, under names of its own.
std::vector<Metric> with_f32(const run::InferReport& report) {
  std::vector<Metric> metrics = report.metrics;
  for (Metric metric : report.f32_metrics) {
    metric.name = "f32_" + metric.name;
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

// A model says something of anything: what it has not learnt from is named.
void print_outside(const std::vector<std::string>& outside) {
  constexpr std::size_t most_lines = 10;
  for (std::size_t i = 0; i < std::min(most_lines, outside.size()); ++i)
    say("superstep: warning: {}\n", outside[i]);
  if (outside.size() > most_lines)
    say("superstep: warning: and {} more are unlike what was learnt from\n", outside.size() - most_lines);
}

// Nothing is wrong with them, but whoever expects them to be used wants to know.
void print_unused(const std::vector<std::string>& names) {
  if (names.empty()) return;
  constexpr std::size_t most_names = 6;
  const std::span<const std::string> some(names.data(), std::min(most_names, names.size()));
  say("superstep: note: the model has no use for {} arrays of the weights: {}{}\n", names.size(),
      printable(join(some, ", ")), names.size() > most_names ? ", ..." : "");
}

void print_digest(const run::InferReport& report) {
  if (report.without_digest)
    say("superstep: note: the run has no digest of its weights: whether they are as they were written is "
        "not known (train --resume writes one)\n");
}

// NaN in, NaN out: whoever takes answers for answers is told, and the command has failed. Of data that it
// made up itself to take the time it only says so.
void require_finite(const Arguments& arguments, const run::InferReport& report) {
  if (report.not_finite == 0) return;
  const std::string what = fmt::format("the outputs of {} of {} samples are not finite",
                                       format_count(static_cast<double>(report.not_finite)),
                                       format_count(static_cast<double>(report.samples)));
  const bool asked_for_answers = !arguments.input.empty() || !arguments.output.empty();
  if (asked_for_answers && !arguments.allow_not_finite)
    throw Error(ErrorCode::diverged, what, arguments.input,
                "look for NaN or infinity in the data; --allow-not-finite takes the answers as they are");
  say("superstep: warning: {}\n", what);
}

void infer(Arguments arguments) {
  run::InferSettings& settings = arguments.settings;
  if (!arguments.inputs.empty()) arguments.input = data::joined_names(arguments.inputs);
  settings.weights = arguments.weights;
  settings.input = arguments.input;
  settings.output = arguments.output;
  settings.onnx = arguments.onnx;
  settings.threads = thread_count();
  settings.chips = chips_of(arguments.chips);
  settings.measure_steps = arguments.explain;
  if (!arguments.lengths.empty()) settings.lengths = run::lengths_from_text(arguments.lengths);
  const run::InferReport report = run::infer(settings);
  if (!common().quiet) {
    fmt::print("{}: {} samples in batches of {} (micro-batches of {}), {}\n", settings.workload,
               format_count(static_cast<double>(report.samples)), report.plan.batch, report.plan.micro_batch,
               workers_of(report.plan));
    if (!report.metrics.empty() && report.metrics[0].how == How::predicted)
      fmt::print("executed vertex by vertex on this host; throughput and latency are modeled\n");
    if (report.passes > 0) fmt::print("means of {} passes with masks\n", report.passes);
    for (const auto& [length, samples] : report.lengths)
      fmt::print("{} samples of at most {} tokens\n", format_count(static_cast<double>(samples)), length);
    if (settings.chips.several() && !report.plan.choice.empty())
      fmt::print("on chips: {}\n", report.plan.choice);
    if (const std::string numerics = numerics_of_target(settings.target); !numerics.empty())
      fmt::print("as {} computes: {}\n", numerics, report.plan.choice);
    fmt::print("{}", report.f32_metrics.empty() ? metrics_table(report.metrics) : comparison(report));
    fmt::print("{}", refinement(report));
    if (!arguments.output.empty()) fmt::print("written to {}\n", arguments.output);
    for (const std::string& note : report.notes) say("superstep: note: {}\n", note);
    print_outside(report.outside);
    print_unused(report.unused_weights);
    print_digest(report);
    if (report.beyond_bounds > 0)
      say("superstep: warning: {} results are left out, because --bound leaves no room for them\n",
          report.beyond_bounds);
  }
  if (arguments.explain) fmt::print("{}{}", explain(report.plan), left_in_f32(report));
  nlohmann::json config{{"weights", arguments.weights},   {"input", arguments.input},
                        {"backend", settings.target},     {"precision", settings.precision},
                        {"batch", report.plan.batch},     {"micro_batch", report.plan.micro_batch},
                        {"threads", report.plan.threads}, {"samples", report.samples}};
  if (report.passes > 0) config["passes"] = report.passes;
  if (!settings.lengths.empty()) config["lengths"] = settings.lengths;
  if (settings.refine > 0) config["refine"] = settings.refine;
  if (report.calibration_samples > 0)
    config["calibration"] = {{"samples", report.calibration_samples},
                             {"ranges", report.ranges},
                             {"int8_products", report.int8_products},
                             {"f32_products", report.f32_products}};
  record::Result result =
      command_result("infer", settings.workload, std::move(config), with_f32(report), settings.target);
  result.mode = "infer";
  keep_and_write_result(std::move(result));
  require_finite(arguments, report);
}

// What is done with what the model says.
void declare_answers(CLI::App& command, run::InferSettings& settings) {
  command
      .add_option(
          "--passes", settings.passes,
          "runs with dropout masks, whose mean and spread are the outputs; 0: none (default: as trained)")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000));
  command
      .add_option("--refine", settings.refine,
                  "steps of Adam on each answer alone, for models that learn without labels")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000));
}

void declare_bytes(CLI::App& command, Arguments& arguments) {
  run::InferSettings& settings = arguments.settings;
  command
      .add_option("--calibrate", settings.calibrate,
                  "int8: samples that ranges are taken from (default: 512)")
      ->type_name("N")
      ->check(positive());
  command
      .add_option("--ranges", settings.ranges,
                  "int8: percentile, entropy or minmax: how much of the tails bytes leave out")
      ->type_name("METHOD");
  command
      .add_option(
          "--byte-error", settings.most_error,
          "most that int8 may move the outputs, of their spread; 0: no limit (default: 0.01, classifiers: 0)")
      ->type_name("X")
      ->check(not_negative());
  command.add_option("--onnx", arguments.onnx, "int8: write the quantized model as ONNX")->type_name("FILE");
}

}  // namespace

void declare_infer(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  run::InferSettings& settings = arguments->settings;
  command
      .add_option("workload", settings.workload,
                  "what to serve: superstep list workloads, or a model file (.onnx)")
      ->required();
  command
      .add_option("--weights", arguments->weights,
                  "the folder of a training run, or weights that others wrote: safetensors, PyTorch, GGUF")
      ->type_name("PATH");
  add_repeated(command, "--set", settings.model_options,
               "name=value of an option of the model, where no run says it; may be repeated", "NAME=VALUE");
  add_data_option(command, "--input", arguments->inputs,
                  "the data: files, folders, patterns, @LIST, NAME=PATH:ARRAY (docs/your-data.md)");
  add_skip_broken_option(command, settings.skip_broken);
  add_crop_option(command, settings.crop);
  add_scale_options(command, settings.scale, settings.offset);
  add_tokenizer_option(command, settings.tokenizer);
  command
      .add_option("--output", arguments->output,
                  "file for the outputs: .h5, .npz, .npy, .safetensors (molecules: .csv, clusters: .xyz)")
      ->type_name("FILE");
  command.add_option("--batch", settings.batch, "samples per call")
      ->type_name("N")
      ->check(positive())
      ->default_str("512; of a model file without data 1");
  add_repeated(command, "--keep", settings.keep,
               "a layer's value, too, of a model file, by its or its node's name; * matches; may be repeated",
               "NAME");
  add_bound_option(command, settings.bounds);
  add_operators_option(command);
  add_shape_option(command, settings.shapes);
  command
      .add_option(
          "--lengths", arguments->lengths,
          "also plan these sequence lengths (64,128,256) and use the shortest that fits (bert-base-squad)")
      ->type_name("N,...");
  command.add_option("--samples", settings.samples, "use so many samples")->type_name("N")->check(positive());
  declare_answers(command, settings);
  command.add_option("--on", settings.target, "where to run: superstep list targets")
      ->type_name("TARGET")
      ->capture_default_str();
  command
      .add_option("--precision", settings.precision,
                  "f32, bf16, f16 (stored; computed in f32) or int8 (calibrated first); default: that of the "
                  "training")
      ->type_name("TYPE");
  add_numerics_options(command, settings.target);
  declare_bytes(command, *arguments);
  add_chip_options(command, arguments->chips);
  command.add_flag("--allow-not-finite", arguments->allow_not_finite,
                   "end with 0 where outputs are NaN or infinite, too; they are counted in any case");
  command.add_flag("--explain", arguments->explain,
                   "print the plan: each step, its kernel and why faster ones refused");
  command.footer(examples);
  command.callback([arguments] { infer(*arguments); });
}

}  // namespace superstep::cli
