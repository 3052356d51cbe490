// superstep sweep WORKLOAD|MODEL.onnx: predictions over a grid of machines, precisions and batches.
#include "superstep/lab/sweep/sweep.h"

#include <fmt/format.h>

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/input_type.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/machine/ipu/kept_plans.h"

namespace superstep::cli {
namespace {

struct Arguments {
  lab::SweepSettings settings;
  std::string mode = "train", micro_batches, accumulates = "1", replicas = "1", recompute = "no", input_type;
  bool all = false;
};

constexpr const char* footer =
    "Numbers are lists, 1,2,8, and doublings, 8..512. Every combination is predicted; what does not fit is "
    "counted. "
    "`superstep advise` searches instead, and gives reasons. Stopped by Ctrl-C, what is there is written.\n"
    "Examples:\n"
    "  superstep sweep braggnn --on gc200,a100-40gb --micro-batch 1..1024\n"
    "  superstep sweep resnet50 --on bow --precision 16.16,f16 --micro-batch 4,8,16 --replicas 1..64 --all\n"
    "  superstep sweep unet-64 --on gc200,sn10,cs2 --micro-batch 1..64 --accumulate 1,8 --recompute both "
    "--json "
    "sweep.json";

void sweep(const Arguments& arguments) {
  lab::SweepSettings settings = arguments.settings;
  settings.trains = arguments.mode == "train";
  if (!arguments.micro_batches.empty())
    settings.micro_batches = lab::counts_from(arguments.micro_batches, "--micro-batch");
  settings.accumulates = lab::counts_from(arguments.accumulates, "--accumulate");
  settings.replicas = lab::counts_from(arguments.replicas, "--replicas");
  if (arguments.recompute == "yes") settings.recomputes = {true};
  if (arguments.recompute == "both") settings.recomputes = {false, true};
  settings.input_bytes = input_bytes_of(arguments.input_type);
  settings.threads = thread_count();
  const record::HostLoad load;
  const machine::ipu::KeptPlans kept;
  const std::vector<lab::SweepPoint> points = lab::sweep(settings);
  std::vector<record::Result> results = lab::results_of(points, settings);
  keep_results(results, load, false);
  constexpr std::size_t rows_of_a_screen = 20;
  if (!common().quiet) fmt::print("{}", lab::text_of(points, arguments.all ? 0 : rows_of_a_screen));
  if (interrupted()) throw Error(ErrorCode::interrupted, "stopped", "sweep");
}

}  // namespace

void declare_sweep(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  a->settings.machines = {"gc200"};
  command
      .add_option("workload", a->settings.model.workload,
                  "a workload (superstep list workloads) or a model file")
      ->required();
  command.add_option("--on", a->settings.machines, "machines (superstep list machines) or machine files")
      ->type_name("MACHINE,...")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--mode", a->mode, "train or infer")
      ->check(CLI::IsMember({"train", "infer"}))
      ->capture_default_str();
  command
      .add_option("--precision", a->settings.precisions,
                  "f32, tf32, f16, bf16, mixed, 16.16 (default: what the machine's users take)")
      ->type_name("NAME,...")
      ->delimiter(',');
  command
      .add_option("--micro-batch", a->micro_batches,
                  "samples that a unit takes at a time (default: the recipe's)")
      ->type_name("N,A..B");
  command.add_option("--accumulate", a->accumulates, "micro-batches per step")
      ->type_name("N,A..B")
      ->capture_default_str();
  command.add_option("--replicas", a->replicas, "copies of the model")
      ->type_name("N,A..B")
      ->capture_default_str();
  command
      .add_option("--recompute", a->recompute,
                  "keep checkpoints, run the forward pass again: no, yes or both")
      ->check(CLI::IsMember({"no", "yes", "both"}))
      ->capture_default_str();
  command.add_option("--device-iterations", a->settings.device_iterations, "steps a call of the program")
      ->check(whole_number_from(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--loaders", a->settings.loaders, "processes of the host that prepare a replica's samples")
      ->check(whole_number_from(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  add_input_type_option(command, a->input_type);
  add_set_option(command, a->settings.model.model_options);
  add_bound_option(command, a->settings.model.bounds);
  add_operators_option(command);
  add_shape_option(command, a->settings.model.shapes);
  command.add_flag("--all", a->all, "every configuration, in the order of the grid");
  command.footer(footer);
  command.callback([a, &command] {
    refuse_given(command,
                 a->mode == "infer" ? "is an option of training: samples that are served are in memory" : "",
                 {"--loaders"});
    sweep(*a);
  });
}

}  // namespace superstep::cli
