#include "superstep/target/pjrt/ahead.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/target/pjrt/client/quiet.h"
#include "superstep/target/pjrt/plugins.h"
#include "superstep/target/pjrt/stablehlo/program.h"

namespace superstep::target::pjrt {
namespace {

using abi::Function;

constexpr double gigabyte = 1e9, gibibyte = 1073741824.0;

// Memory of a chip: Google Cloud's pages "TPU v5e", "TPU v5p", "TPU v6e" (16, 95 and 32 GB of HBM) and
// "TPU7x" (192 GiB). Topologies are the smallest of each that libtpu knows.
constexpr AbsentDevice devices[] = {
    {"tpu-v5e", "tpu", "v5e:2x2", 16 * gigabyte},
    {"tpu-v5p", "tpu", "v5p:2x2x1", 95 * gigabyte},
    {"tpu-v6e", "tpu", "v6e:2x2", 32 * gigabyte},
    {"tpu7x", "tpu", "tpu7x:2x2x1", 192 * gibibyte},
};

// Without this libtpu asks a server of Google's cloud for two minutes what it runs on.
void prepare_environment() { setenv("TPU_SKIP_MDS_QUERY", "1", 0); }

Topology topology_of(const Library& library, const AbsentDevice& device) {
  abi::TopologyCreateArgs args{.name = device.topology.data(), .name_size = device.topology.size()};
  library.call(Function::topology_create, args, "describing the device " + std::string(device.name));
  return {library, args.topology};
}

Compiled compiled_for(const Library& library, const Topology& topology, const std::string& text) {
  const abi::Program program = program_of(text);
  const std::string options = compile_options(false);
  abi::CompileArgs args{.topology = topology.get(),
                        .program = &program,
                        .options = options.data(),
                        .options_size = options.size()};
  library.call(Function::compile, args, "compiling the program");
  return {library, args.executable};
}

// "estimated_cycles":"1234" stands in what the compiler keeps of every kernel.
void read_cycles(std::string_view program, AheadReport& report) {
  static constexpr std::string_view mark = "\"estimated_cycles\":\"";
  double sum = 0;
  for (std::size_t at = program.find(mark); at != std::string_view::npos; at = program.find(mark, at)) {
    at += mark.size();
    sum += std::strtod(std::string(program.substr(at, 24)).c_str(), nullptr);
    ++report.kernels;
  }
  if (report.kernels > 0) report.cycles = sum;
}

}  // namespace

std::span<const AbsentDevice> absent_devices() { return devices; }

const AbsentDevice& find_absent_device(std::string_view name) {
  std::vector<std::string> names;
  for (const AbsentDevice& device : devices) {
    if (device.name == name) return device;
    names.emplace_back(device.name);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such device to compile for", std::string(name),
              unknown_name_hint(name, names));
}

AheadReport compile_ahead(const AbsentDevice& device, const graph::Graph& graph) {
  prepare_environment();
  const Library& library = Library::open(plugin_of({.kind = find_kind(device.kind)}));
  const std::string text = stablehlo::write_program(graph, {.constants_as_arguments_above = 512}).text;
  const Quiet quiet;
  const Stopwatch watch;
  const Topology topology = topology_of(library, device);
  const Compiled compiled = compiled_for(library, topology, text);
  AheadReport report{.memory = memory_need(library, compiled), .compile_seconds = watch.seconds()};
  if (library.has(Function::executable_optimized_program))
    read_cycles(optimized_program(library, compiled), report);
  return report;
}

}  // namespace superstep::target::pjrt
