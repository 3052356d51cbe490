#include "superstep/cli/predict/on_processor.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/predict/prediction_words.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/cli/shared/processor_words.h"
#include "superstep/lab/profile/model.h"
#include "superstep/lab/question.h"
#include "superstep/run/model.h"
#include "superstep/target/target.h"

namespace superstep::cli {
namespace {

// The plan run here, beside what was predicted of it.
void add_measured(target::Executable& plan, bool training, double seconds, double predicted,
                  std::vector<Metric>& metrics) {
  const lab::MeasuredRuns measured = lab::measure_runs(plan, training, seconds);
  metrics.push_back({.name = "measured_step_time", .value = measured.median, .unit = "s"});
  metrics.push_back({.name = "measured_step_time_best", .value = measured.best, .unit = "s"});
  if (!common().quiet)
    fmt::print(
        "measured here        {} at best, {} in the median of {} runs: predicted over the best {:.2f}\n",
        format_seconds(measured.best), format_seconds(measured.median), measured.runs,
        predicted / measured.best);
}

// As `profile` has it: a model is put on bytes by samples of its own.
target::GraphAtBatch on_bytes(const PredictArguments& arguments, const run::TrainSettings& settings,
                              std::int64_t batch) {
  lab::ProfileRequest request{.model = settings.workload,
                              .mode = arguments.mode,
                              .precision = "int8",
                              .model_options = settings.model_options,
                              .shapes = settings.shapes,
                              .bounds = settings.bounds,
                              .batch = batch};
  return lab::open_profiled_model(request, &target::find_target("cpu")).graph;
}

}  // namespace

void predict_processor(const PredictArguments& arguments, const machine::Machine& machine) {
  const bool training = arguments.mode == "train", bytes = arguments.precision == "int8";
  if (training && bytes)
    throw Error(ErrorCode::invalid_argument, "int8 is for serving", "--precision", "add --mode infer");
  const run::TrainSettings settings =
      lab::as_workload({.workload = arguments.workload,
                        .precision = arguments.precision.empty() || bytes ? "f32" : arguments.precision,
                        .model_options = arguments.settings,
                        .shapes = arguments.shapes,
                        .bounds = arguments.bounds});
  const run::Model model(settings);
  const target::Target& cpu = target::find_target("cpu");
  const std::int64_t batch = arguments.batch > 0       ? arguments.batch
                             : model.fixed_batch() > 0 ? model.fixed_batch()
                             : training                ? model.settings().batch
                                                       : 1;
  const target::GraphAtBatch graph = bytes      ? on_bytes(arguments, settings, batch)
                                     : training ? model.training_step(&cpu)
                                                : model.inference(&cpu);
  target::CompileOptions options{.batch = batch,
                                 .micro_batch = model.fixed_batch() > 0 ? batch : arguments.micro_batch,
                                 .threads = thread_count()};
  const auto plan = cpu.compile(graph, options);
  lab::ProcessorPrediction prediction = lab::predict_plan(machine, plan->summary(), training);
  std::vector<Metric> metrics = processor_metrics(prediction);
  if (!prediction.beyond.empty() && !arguments.extrapolate)
    throw Error(ErrorCode::unsupported, join(prediction.beyond, "; "), arguments.workload,
                "--extrapolate predicts it all the same");
  const std::string precision = bytes ? "int8" : model.settings().precision;
  if (arguments.explain && arguments.measure > 0) {
    options.measure_steps = true;
    lab::measure_steps_of(prediction, *cpu.compile(graph, options), training, arguments.measure);
  }
  if (!common().quiet)
    fmt::print("{}", processor_text(fmt::format("{} ({}), {}", arguments.workload, arguments.mode, precision),
                                    machine, prediction, arguments.explain));
  if (arguments.provenance && !common().quiet) fmt::print("\n{}", provenance_text(machine));
  if (arguments.measure > 0) add_measured(*plan, training, arguments.measure, prediction.seconds, metrics);
  nlohmann::json config = processor_config(machine, prediction, arguments.explain);
  config["mode"] = arguments.mode;
  config["precision"] = precision;
  write_result(command_result("predict", arguments.workload, config, metrics, machine.id()));
}

}  // namespace superstep::cli
