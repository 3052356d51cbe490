// superstep compile WORKLOAD --for DEVICE,...: what the vendor's compiler of a device that is not there says
// of a model.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/graph_passes.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/machine/machine.h"
#include "superstep/target/pjrt/ahead.h"

namespace superstep::cli {
namespace {

using target::pjrt::AbsentDevice;
using target::pjrt::AheadReport;

struct Arguments {
  GraphRequest request;
  std::vector<std::string> devices;
};

constexpr const char* footer =
    "The program is compiled and not run. Bytes are those of one chip; cycles are the compiler's own "
    "estimate,\n"
    "summed over its kernels, of which those in loops count once. Compiling for TPUs takes Google's "
    "compiler\n"
    "(tools/setup-plugins tpu, or pip install libtpu) and a minute or so a model.\n"
    "Examples:\n"
    "  superstep compile braggnn --batch 64 --for tpu-v5e,tpu-v6e\n"
    "  superstep compile bert-small --mode infer --precision bf16 --for tpu-v5p,a100-40gb,h100";

std::string device_names() {
  std::string names;
  for (const AbsentDevice& device : target::pjrt::absent_devices())
    names += (names.empty() ? "" : ", ") + std::string(device.name);
  return names;
}

std::string bytes_text(std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

// What does not fit may fit with fewer samples: temporaries and results go with the batch.
std::string fits_text(const AbsentDevice& device, const AheadReport& report, std::int64_t batch) {
  const auto all = static_cast<double>(report.memory.bytes());
  if (all <= device.memory_bytes)
    return fmt::format("yes, {:.1f} % of {}", 100 * all / device.memory_bytes,
                       format_bytes(device.memory_bytes));
  const auto by_batch = static_cast<double>(report.memory.temporaries), fixed = all - by_batch;
  if (fixed >= device.memory_bytes || batch <= 1) return "no: not with one sample either";
  const double share = (device.memory_bytes - fixed) / by_batch;
  return fmt::format(
      "no: --batch {} may",
      std::max<std::int64_t>(1, static_cast<std::int64_t>(share * static_cast<double>(batch))));
}

record::Result result_of(const Arguments& arguments, const AbsentDevice& device, const AheadReport& report) {
  const auto metric = [](const char* name, double value, const char* unit) {
    return Metric{.name = name, .value = value, .unit = unit, .how = How::predicted, .samples = {}};
  };
  std::vector<Metric> metrics = {
      metric("argument_bytes", static_cast<double>(report.memory.arguments), "B"),
      metric("temporary_bytes", static_cast<double>(report.memory.temporaries), "B"),
      metric("code_bytes", static_cast<double>(report.memory.code), "B"),
      metric("memory", static_cast<double>(report.memory.bytes()), "B"),
      metric("compile_time", report.compile_seconds, "s")};
  if (report.cycles) metrics.push_back(metric("cycles", *report.cycles, ""));
  return command_result("compile", arguments.request.workload,
                        {{"mode", arguments.request.mode},
                         {"precision", arguments.request.precision},
                         {"batch", arguments.request.batch},
                         {"by", "the vendor's compiler"}},
                        metrics, std::string(device.name));
}

// Why there is no compiler to ask for a machine that cost models know.
std::string_view no_compiler_of(std::string_view machine) {
  if (machine.starts_with("mi"))
    return "AMD's compiler (in jax-rocm7-plugin) loads only beside the libraries of a whole ROCm, HIP among "
           "them, and needs its bitcode for devices";
  return "no compiler of its maker is known that works without the device";
}

// A machine that only cost models know is refused with the call that asks them.
const AbsentDevice& device_of(const std::string& name, const GraphRequest& request) {
  const auto there = target::pjrt::absent_devices();
  const bool compiles = std::ranges::find(there, name, &AbsentDevice::name) != there.end();
  const auto& known = machine::machines();
  if (!compiles && std::ranges::find(known, name, &machine::Machine::id) != known.end())
    throw Error(
        ErrorCode::unsupported, std::string(no_compiler_of(name)), name,
        fmt::format("ask the cost model: superstep predict {} --on {} --mode {} --batch {} --precision {}",
                    request.workload, name, request.mode, request.batch, request.precision));
  return target::pjrt::find_absent_device(name);
}

// A device whose compiler refuses the program is a row with its words.
void compile(Arguments arguments) {
  const record::HostLoad load;
  arguments.request.on = "pjrt";
  if (arguments.request.batch == 0) arguments.request.batch = 1;
  std::vector<const AbsentDevice*> devices;
  for (const std::string& name : arguments.devices) devices.push_back(&device_of(name, arguments.request));
  const graph::Graph graph = run_listed(passes_of(arguments.request, true), arguments.request, false);
  TextTable table({"device", "fits", "arguments", "temporaries", "code", "cycles", "kernels", "compiled in"});
  std::vector<record::Result> results;
  Progress line("compiling", static_cast<double>(devices.size()), "devices");
  double done = 0;
  for (const AbsentDevice* device : devices) {
    line.update(done++, device->name);
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped", "compile");
    try {
      const AheadReport report = target::pjrt::compile_ahead(*device, graph);
      table.add_row({std::string(device->name), fits_text(*device, report, arguments.request.batch),
                     bytes_text(report.memory.arguments), bytes_text(report.memory.temporaries),
                     bytes_text(report.memory.code), report.cycles ? format_count(*report.cycles) : "",
                     report.kernels > 0 ? fmt::format("{}", report.kernels) : "",
                     format_seconds(report.compile_seconds)});
      results.push_back(result_of(arguments, *device, report));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
      table.add_row({std::string(device->name), "no: " + error.message(), "", "", "", "", "", ""});
    }
  }
  line.finish();
  keep_results(results, load, false);
  if (!common().quiet) fmt::print("{}", table.to_string());
}

}  // namespace

void declare_compile(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  GraphRequest& request = a->request;
  request.mode = "train";
  command.add_option("workload", request.workload, "superstep list workloads, or a model file (.onnx)")
      ->required();
  command.add_option("--for", a->devices, "devices to compile for, joined by commas")
      ->type_name("DEVICE,...")
      ->delimiter(',')
      ->required();
  command.add_option("--mode", request.mode, "train: forward, backward and optimizer; infer")
      ->check(CLI::IsMember({"train", "infer"}))
      ->capture_default_str();
  command.add_option("--batch", request.batch, "samples (default: 1, or what a file fixes)")
      ->type_name("N")
      ->check(positive());
  command.add_option("--precision", request.precision, "f32 or bf16")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  add_set_option(command, request.model_options);
  add_bound_option(command, request.bounds);
  add_operators_option(command);
  add_shape_option(command, request.shapes);
  add_loss_option(command, request.loss);
  command.footer(fmt::format("Devices: {}\n{}", device_names(), footer));
  command.callback([a] { compile(*a); });
}

}  // namespace superstep::cli
