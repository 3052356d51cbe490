// superstep profile WORKLOAD: where the time of a plan goes, as a page and as a trace.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/chip_options.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/cli/shared/profile_modelled.h"
#include "superstep/file/source/paths.h"
#include "superstep/lab/profile/device_profile.h"
#include "superstep/lab/profile/model.h"
#include "superstep/lab/profile/more_threads.h"
#include "superstep/lab/profile/report.h"
#include "superstep/record/environment.h"
#include "superstep/run/environment.h"
#include "superstep/target/pjrt/pjrt.h"

namespace superstep::cli {
namespace {

struct Arguments {
  lab::ProfileRequest request;
  lab::ProfileSettings settings;
  ChipArguments chips;
  std::string machine = "cpu", out;
  std::vector<std::string> data;
  std::vector<int> simulate;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep profile braggnn --out profile/                    a training step, as it is trained\n"
    "  superstep profile braggnn --mode infer --batch 1 --threads 1 --out profile/\n"
    "  superstep profile braggnn --on gc200 --mode infer --batch 16 --out profile/    cycles and memory, "
    "tile by tile\n"
    "  superstep profile braggnn --batch 512 --simulate 4,16,64    on threads that this machine does not "
    "have\n"
    "  superstep profile braggnn --on cuda --out profile/          copies, start and computation on a "
    "device\n"
    "  superstep profile unet-256 --on gc200 --mode infer --batch 1 --out profile/\n"
    "  superstep profile braggnn --on gc200 --replicas 2 --accumulate 2 --batch 16 --out profile/\n"
    "Writes profile.html (tables, timeline) and trace.json, which https://ui.perfetto.dev opens.";

void write_files(const lab::Profile& profile, const std::filesystem::path& folder) {
  make_folder(folder);
  const auto processor = record::environment_record(profile.plan.threads)["host"]["processor"];
  lab::write_profile_page(profile, folder / "profile.html",
                          processor.is_string() ? processor.get<std::string>() : std::string());
  write_file_atomically(folder / "trace.json", lab::profile_trace(profile));
  if (!common().quiet)
    fmt::print("written to {} and {}\n", (folder / "profile.html").string(),
               (folder / "trace.json").string());
}

void keep(const Arguments& arguments, const lab::Profile& profile) {
  const nlohmann::json config{{"mode", profile.mode},
                              {"precision", profile.precision},
                              {"batch", profile.plan.batch},
                              {"micro_batch", profile.plan.micro_batch},
                              {"threads", profile.plan.threads},
                              {"runs", arguments.settings.runs}};
  record::Result result =
      command_result("profile", profile.name, config, lab::profile_metrics(profile), arguments.machine);
  result.mode = profile.mode;
  result.folder = arguments.out;
  result.environment = record::environment_record(profile.plan.threads);
  keep_and_write_result(std::move(result));
}

std::vector<Metric> simulated_metrics(const std::vector<lab::SimulatedRun>& runs) {
  std::vector<Metric> metrics;
  for (const lab::SimulatedRun& run : runs) {
    const double low = run.low.seconds(), high = run.high.seconds();
    metrics.push_back({.name = fmt::format("step_time_{}_threads", run.threads),
                       .value = (low + high) / 2,
                       .unit = "s",
                       .how = How::predicted,
                       .samples = {},
                       .low = low,
                       .high = high});
    if (run.measured > 0)
      metrics.push_back({.name = fmt::format("step_time_{}_threads_measured", run.threads),
                         .value = run.measured,
                         .unit = "s",
                         .samples = {}});
  }
  return metrics;
}

// Times of steps are measured on this machine, what more threads make of them is simulated.
void profile_simulated(const Arguments& arguments, const target::Target& target,
                       const lab::ProfiledModel& model) {
  const lab::MeasuredCosts costs = lab::measure_thread_costs();
  const std::vector<lab::SimulatedRun> runs =
      lab::simulate_threads(target, model, arguments.settings, arguments.simulate, costs);
  if (!common().quiet)
    fmt::print("{} {}, {}: batch {}\n{}", model.name, model.mode, model.precision, arguments.settings.batch,
               lab::simulated_text(runs, arguments.settings.batch, costs));
  const nlohmann::json config{{"mode", model.mode},
                              {"precision", model.precision},
                              {"batch", arguments.settings.batch},
                              {"threads", arguments.simulate},
                              {"runs", arguments.settings.runs}};
  record::Result result =
      command_result("profile", model.name, config, simulated_metrics(runs), arguments.machine);
  result.mode = model.mode;
  result.environment = record::environment_record(1);
  keep_and_write_result(std::move(result));
}

// Measured on this machine, by the target of that name.
void profile_measured(Arguments arguments) {
  if (chips_of(arguments.chips).several())
    throw Error(ErrorCode::unsupported,
                "stages, replicas and accumulation belong to machines of several chips", arguments.machine,
                "use --on gc200, bow or gc2");
  if (!arguments.data.empty()) arguments.request.data = data::joined_names(arguments.data);
  const target::Target& target = target::find_target(arguments.machine);
  const lab::ProfiledModel model = lab::open_profiled_model(arguments.request, &target);
  arguments.settings.batch = arguments.request.batch;
  if (!arguments.simulate.empty()) return profile_simulated(arguments, target, model);
  arguments.settings.threads = thread_count();
  const lab::MachineFloor machine = lab::measure_floor(arguments.settings.threads);
  const lab::Profile profile = lab::measure_profile(target, model, arguments.settings, machine);
  if (!common().quiet) fmt::print("{}", lab::profile_text(profile));
  if (!arguments.out.empty()) write_files(profile, arguments.out);
  keep(arguments, profile);
}

// Modelled, on a bulk-synchronous machine.
void profile_on_machine(Arguments arguments) {
  if (!arguments.simulate.empty())
    throw Error(ErrorCode::unsupported, "threads are a processor's", "--simulate",
                "leave out --on, or --simulate");
  if (!arguments.data.empty()) arguments.request.data = data::joined_names(arguments.data);
  profile_modelled(arguments.machine, arguments.request, chips_of(arguments.chips), arguments.out);
}

// The options that mean something to a device are those of any run on one.
void refuse_what_no_device_heeds(const Arguments& arguments) {
  const auto refuse = [&](bool given, const char* option, const char* why) {
    if (given) throw Error(ErrorCode::unsupported, why, option, "leave it away, or use --on cpu");
  };
  refuse(!arguments.simulate.empty(), "--simulate", "threads are a processor's");
  refuse(arguments.settings.micro_batch > 0, "--micro-batch", "a device takes the batch as a whole");
  refuse(arguments.request.precision == "int8", "--precision int8", "bytes are chosen for this processor");
  if (const int replicas = arguments.chips.replicas; replicas > 1 && arguments.request.batch % replicas != 0)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("a batch of {} cannot be divided over {} devices", arguments.request.batch, replicas),
        "--batch", "choose a multiple of the number of --replicas");
}

// Measured, on a device behind a plug-in.
void profile_on_device(Arguments arguments) {
  if (!arguments.data.empty()) arguments.request.data = data::joined_names(arguments.data);
  const target::Target& target = target::find_target(arguments.machine);
  const lab::ProfiledModel model = lab::open_profiled_model(arguments.request, &target);
  arguments.settings.batch = arguments.request.batch;
  refuse_what_no_device_heeds(arguments);
  const lab::DeviceProfile profile = lab::measure_device_profile(
      target, model, arguments.settings, chips_of(arguments.chips), !arguments.out.empty());
  if (!common().quiet) fmt::print("{}", lab::device_profile_text(profile));
  if (!arguments.out.empty()) {
    const std::vector<std::string> names = lab::write_device_profile(profile, arguments.out);
    if (!common().quiet) fmt::print("written to {}: {}\n", arguments.out, fmt::join(names, ", "));
  }
  nlohmann::json config{{"mode", profile.mode},
                        {"precision", profile.precision},
                        {"batch", profile.plan.batch},
                        {"runs", arguments.settings.runs}};
  if (profile.plan.devices > 1) config["replicas"] = profile.plan.devices;
  record::Result result = command_result("profile", profile.name, std::move(config),
                                         lab::device_profile_metrics(profile), arguments.machine);
  result.mode = profile.mode;
  result.folder = arguments.out;
  result.environment = run::environment_of(arguments.machine, 1);
  keep_and_write_result(std::move(result));
}

struct Profiler {
  std::string_view machine;
  void (*run)(Arguments arguments);
};
constexpr std::array profilers = {Profiler{"cpu", profile_measured}, Profiler{"gc200", profile_on_machine},
                                  Profiler{"bow", profile_on_machine}, Profiler{"gc2", profile_on_machine}};

void profile(const Arguments& arguments) {
  std::vector<std::string> names;
  for (const Profiler& profiler : profilers) {
    if (profiler.machine == arguments.machine) return profiler.run(arguments);
    names.emplace_back(profiler.machine);
  }
  if (target::pjrt::find_device_target(arguments.machine)) return profile_on_device(arguments);
  for (const std::string_view name : target::pjrt::device_target_names()) names.emplace_back(name);
  throw Error(ErrorCode::invalid_argument, "there is no profile of this machine", arguments.machine,
              unknown_name_hint(arguments.machine, names));
}

}  // namespace

void declare_profile(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  lab::ProfileRequest& request = arguments->request;
  command
      .add_option("workload", request.model,
                  "what to profile: superstep list workloads, or a model file (.onnx)")
      ->required();
  command
      .add_option("--on", arguments->machine,
                  "the machine: cpu, or a device (measured); gc200, bow, gc2 (modeled)")
      ->type_name("MACHINE")
      ->capture_default_str();
  command.add_option("--mode", request.mode, "train or infer")->type_name("MODE")->capture_default_str();
  command.add_option("--batch", request.batch, "samples per run (default: the workload's own)")
      ->type_name("N")
      ->check(positive());
  command
      .add_option("--micro-batch", arguments->settings.micro_batch,
                  "samples through the model at a time (default: chosen to stay in cache)")
      ->type_name("N")
      ->check(positive());
  command.add_option("--precision", request.precision, "f32 or bf16; with --mode infer also f16 and int8")
      ->type_name("TYPE")
      ->capture_default_str();
  command.add_option("--runs", arguments->settings.runs, "measured runs")
      ->type_name("N")
      ->check(CLI::Range(3, 100000))
      ->capture_default_str();
  add_set_option(command, request.model_options);
  add_data_option(command, "--data", arguments->data, "the data; without them they are generated");
  add_bound_option(command, request.bounds);
  add_operators_option(command);
  add_shape_option(command, request.shapes);
  add_chip_options(command, arguments->chips);
  command
      .add_option("--simulate", arguments->simulate,
                  "simulate the step on so many threads from its times on one, instead of a profile")
      ->type_name("N,N,...")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  command.add_option("--out", arguments->out, "folder for profile.html and trace.json")
      ->type_name("DIR")
      ->excludes("--simulate");
  command.footer(examples);
  command.callback([arguments, &command] {
    const bool measured = arguments->machine == "cpu" || target::pjrt::find_device_target(arguments->machine);
    refuse_given(command, measured ? "" : "is of what runs here, and a machine is modeled",
                 {"--runs", "--data"});
    profile(*arguments);
  });
}

}  // namespace superstep::cli
