// This machine as a machine file: its constants measured now, kind ME.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "superstep/machine/processor/kernel_times.h"
#include "superstep/record/result.h"

namespace superstep::lab {

struct HostQuantity {
  std::string name, unit;
  double value = 0, low = 0, high = 0;  // the best trial, and the range from it to the median
  std::string note;
  std::string kind = "ME";  // or GU: a guess, where nothing says it
};

struct HostMachine {
  std::string id, name;                 // "mybox"; the processor's model
  std::string host, date;               // for the sources
  std::string through;                  // of a device: its plug-in; empty: the processor itself
  bool busy = false;                    // the machine had other work to do meanwhile
  std::vector<HostQuantity> constants;  // of a machine file's style "kernel-by-kernel"
  std::vector<HostQuantity> measured;   // everything that was measured
  machine::ProcessorTimes kernels;      // of the engine
};

struct HostMachineSettings {
  std::string id = "cpu-local";
  int threads = 1;
  std::filesystem::path folder;  // where file speed is measured; empty: the folder of temporary files
  std::size_t file_bytes = std::size_t{256} << 20;
  std::uint64_t probes = 120;  // networks whose kernels are timed (lab/processor/probes.h)
  std::function<void(const std::string& what)> progress = {};
};

// Takes one to two minutes. Throws Error (io) when the folder cannot be written.
HostMachine measure_host(const HostMachineSettings& settings);

// The constants as TOML, in the form that `--on FILE.toml` takes, and the table [measured] behind them.
std::string to_toml(const HostMachine& machine);
record::Result to_result(const HostMachine& machine, int threads);

}  // namespace superstep::lab
