// The target of every device that a PJRT plug-in drives: "pjrt" for the first there is, "cuda", "tpu", ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/target/target.h"

namespace superstep::target::pjrt {

// The target that a name of pjrt/plugins.h stands for: "cuda:1", "pjrt:/opt/plugin.so". Null where the name
// is of another kind. The same name gives the same target, which lives as long as the program.
const Target* find_device_target(std::string_view name);
// The names without a device's number, for who lists what `--on` takes.
std::vector<std::string_view> device_target_names();

// What there is: one entry a plug-in that was found, or a kind of which there is none.
struct DeviceEntry {
  std::string kind, kind_of_devices;  // "cuda", "NVIDIA GPUs"
  std::string plugin;                 // its file; empty: none was found
  std::string versions;               // "PJRT 0.115, StableHLO 1.20.0"
  struct Device {
    std::string name, what;  // "cuda:0", "NVIDIA H100 80GB HBM3, 79.6 GB"
  };
  std::vector<Device> devices;
  std::string trouble;  // why it has no device, or what to install
};
std::vector<DeviceEntry> list_devices();

// For records: the devices that graphs were compiled for in this process, for the target of that name. Empty
// where there was none.
struct DeviceFacts {
  std::string name, kind;                  // "cuda:0", "NVIDIA H100 80GB HBM3"
  std::int64_t memory_bytes = 0;           // 0: the plug-in does not say
  std::string plugin, versions;            // its file's name; "PJRT 0.115, StableHLO 1.20.0"
  std::string platform, platform_version;  // in the plug-in's words
};
std::vector<DeviceFacts> devices_in_use(std::string_view target);

// What the plug-in says of a program that a target behind one compiled, and the profiler that it may have.
struct ProgramFacts {
  struct Cost {
    std::string name;  // in its compiler's words: "flops", "bytes accessed"
    double value = 0;
  };
  std::vector<Cost> costs;  // empty: it estimates none
  std::int64_t argument_bytes = 0, result_bytes = 0, temporary_bytes = 0, code_bytes = 0;
  bool has_profiler = false;
};
// Throws Error (unsupported) for an executable of another kind.
ProgramFacts program_facts(const Executable& executable);
// What the plug-in's profiler records while `body` runs: a protobuf, XSpace. Throws Error (unsupported) where
// it has none.
std::string device_trace(const Executable& executable, FunctionRef<void()> body);

}  // namespace superstep::target::pjrt
