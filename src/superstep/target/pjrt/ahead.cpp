#include "superstep/target/pjrt/ahead.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/mapped_file.h"
#include "superstep/base/text.h"
#include "superstep/target/pjrt/client/quiet.h"
#include "superstep/target/pjrt/plugins.h"
#include "superstep/target/pjrt/stablehlo/program.h"

namespace superstep::target::pjrt {
namespace {

using abi::Function;

constexpr double gigabyte = 1e9, gibibyte = 1073741824.0;

// Memory of a chip: of TPUs Google Cloud's pages "TPU v5e", "TPU v5p", "TPU v6e" (16, 95 and 32 GB of HBM)
// and "TPU7x" (192 GiB), of GPUs NVIDIA's data sheets. Topologies are the smallest of each that libtpu knows.
constexpr AbsentDevice devices[] = {
    {"tpu-v5e", "tpu", "v5e:2x2", 16 * gigabyte},
    {"tpu-v5p", "tpu", "v5p:2x2x1", 95 * gigabyte},
    {"tpu-v6e", "tpu", "v6e:2x2", 32 * gigabyte},
    {"tpu7x", "tpu", "tpu7x:2x2x1", 192 * gibibyte},
    {"v100", "cuda", "Tesla V100-SXM2-16GB", 16 * gigabyte},
    {"a100-40gb", "cuda", "NVIDIA A100-SXM4-40GB", 40 * gigabyte},
    {"a100-80gb", "cuda", "NVIDIA A100-SXM4-80GB", 80 * gigabyte},
    {"h100", "cuda", "NVIDIA H100 80GB HBM3", 80 * gigabyte},
    {"h200", "cuda", "NVIDIA H200 141GB HBM3e", 141 * gigabyte},
    {"b200", "cuda", "NVIDIA B200", 180 * gigabyte},
    {"b300", "cuda", "NVIDIA B300", 288 * gigabyte},
};

// Without the first, libtpu asks a server of Google's cloud for two minutes what it runs on. Of the second,
// XLA's compiler for GPUs wants NVIDIA's assembler, which the packages nvidia-cuda-nvcc and nvidia-nvvm hold
// beside it.
void prepare_environment(const std::filesystem::path& plugin) {
  setenv("TPU_SKIP_MDS_QUERY", "1", 0);
  const std::filesystem::path tools = plugin.parent_path().parent_path().parent_path() / "nvidia/cu13";
  std::error_code failure;
  if (!std::filesystem::exists(tools, failure)) return;
  const char* const given = std::getenv("XLA_FLAGS");
  const std::string flags = given ? given : "";
  if (flags.find("xla_gpu_cuda_data_dir") != std::string::npos) return;
  setenv("XLA_FLAGS", (flags + " --xla_gpu_cuda_data_dir=" + tools.string()).c_str(), 1);
}

// A description of a machine, as XLA's library holds it: text between two zero bytes, with this name in it.
std::string machine_description(const Library& library, std::string_view name) {
  const MappedFile file(library.file());
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  const std::string mark = fmt::format("device_description_str: \"{}\"", name);
  const std::size_t at = bytes.find(mark);
  if (at == std::string_view::npos)
    throw Error(ErrorCode::unsupported, fmt::format("it holds no description of {}", name), library.name(),
                "install another release of it");
  const std::size_t begin = bytes.rfind('\0', at) + 1, end = bytes.find('\0', at);
  return std::string(bytes.substr(begin, end - begin));
}

abi::NamedValue text_option(std::string_view name, std::string_view value) {
  abi::NamedValue option;
  option.head.struct_size = sizeof option;
  option.name = name.data();
  option.name_size = name.size();
  option.text = value.data();
  option.value_size = value.size();
  return option;
}

// TPUs are known by a topology's name; of GPUs one in one host is described by options.
Topology topology_of(const Library& library, const AbsentDevice& device) {
  const bool described = device.kind == "cuda";
  const std::string machine = described ? machine_description(library, device.known_as) : "";
  const abi::NamedValue options[] = {text_option("target_config", machine), text_option("topology", "1x1x1")};
  abi::TopologyCreateArgs args{.name = device.known_as.data(),
                               .name_size = device.known_as.size(),
                               .options = described ? options : nullptr,
                               .option_count = described ? std::size(options) : 0};
  library.call(Function::topology_create, args, "describing the device " + std::string(device.name));
  return {library, args.topology};
}

Compiled compiled_for(const Library& library, const Topology& topology, const std::string& text) {
  const abi::Program program = program_of(text);
  const std::string options = compile_options({});
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
  const std::filesystem::path plugin = plugin_of({.kind = find_kind(device.kind)});
  prepare_environment(plugin);
  const Library& library = Library::open(plugin);
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
