// superstep infer WORKLOAD: a trained model applied to a file.
#include "superstep/run/infer.h"

#include <fmt/format.h>

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/explain.h"
#include "superstep/cli/metrics.h"
#include "superstep/cli/result.h"
#include "superstep/run/environment.h"
#include "superstep/run/records.h"

namespace superstep::cli {
namespace {

struct Arguments {
  run::InferSettings settings;
  std::string weights, input, output;
  bool explain = false;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep infer braggnn --weights run/ --input peaks.h5 --output positions.h5\n"
    "  superstep infer braggnn --weights run/ --batch 1 --threads 1      how long one patch takes\n"
    "Without --input the workload's data are generated; without --weights the model has its initial\n"
    "weights, which is enough to measure speed.";

void infer(Arguments arguments) {
  run::InferSettings& settings = arguments.settings;
  settings.weights = arguments.weights;
  settings.input = arguments.input;
  settings.output = arguments.output;
  settings.threads = thread_count();
  settings.measure_steps = arguments.explain;
  const run::InferReport report = run::infer(settings);
  if (!common().quiet) {
    fmt::print("{}: {} samples in batches of {} (micro-batches of {}), {} threads\n", settings.workload,
               format_count(static_cast<double>(report.samples)), report.plan.batch, report.plan.micro_batch,
               report.plan.threads);
    fmt::print("{}", metrics_table(report.metrics));
    if (!arguments.output.empty()) fmt::print("written to {}\n", arguments.output);
  }
  if (arguments.explain) fmt::print("{}", explain(report.plan));
  const nlohmann::json config{{"weights", arguments.weights},   {"input", arguments.input},
                              {"backend", settings.backend},    {"precision", settings.precision},
                              {"batch", report.plan.batch},     {"micro_batch", report.plan.micro_batch},
                              {"threads", report.plan.threads}, {"samples", report.samples}};
  run::keep_record({.command = "infer",
                    .workload = settings.workload,
                    .machine = settings.backend,
                    .config = config,
                    .environment = run::environment_record(thread_count()),
                    .metrics = report.metrics});
  write_result({"infer", settings.workload, config, report.metrics});
}

}  // namespace

void declare_infer(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  run::InferSettings& settings = arguments->settings;
  command.add_option("workload", settings.workload, "what to serve: superstep list workloads")->required();
  command.add_option("--weights", arguments->weights, "the folder of a training run")->type_name("DIR");
  command.add_option("--input", arguments->input, "the data, in the workload's format")->type_name("FILE");
  command.add_option("--output", arguments->output, "the model's outputs, as HDF5")->type_name("FILE");
  command.add_option("--batch", settings.batch, "samples a call")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--samples", settings.samples, "use so many samples")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command.add_option("--on", settings.backend, "where to run: superstep list backends")
      ->type_name("BACKEND")
      ->capture_default_str();
  command.add_option("--precision", settings.precision, "f32 or bf16 (default: that of the training)")
      ->type_name("TYPE");
  command.add_flag("--explain", arguments->explain,
                   "print the plan: each step, its kernel and why faster ones refused");
  command.footer(examples);
  command.callback([arguments] { infer(*arguments); });
}

}  // namespace superstep::cli
