// Where the time of a step on a device behind a plug-in goes, as its host sees it: copies, the start of the
// program, its computation; beside what the plug-in's compiler says of it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/lab/profile/profile.h"
#include "superstep/target/pjrt/pjrt.h"

namespace superstep::lab {

struct DevicePhase {
  std::string name;
  double seconds = 0;  // median over all measured runs
  double bytes = 0;    // copied; 0: none
};

struct DeviceProfile {
  std::string name, mode, precision, target;
  std::vector<std::string> devices;  // "cuda:0, NVIDIA H100 80GB HBM3"
  target::PlanSummary plan;
  target::pjrt::ProgramFacts program;
  std::vector<DevicePhase> phases;
  target::Timeline timeline;   // of the median run among those with awaited phases
  double seconds = 0;          // of a run, median: nothing is awaited but its outputs
  double awaited_seconds = 0;  // of one in which each phase is awaited before the next begins
  double ahead_seconds = 0;    // of one during which the inputs of the next are sent
  std::string trace;           // what the plug-in's profiler recorded of a few runs; empty: it has none

  double throughput() const { return static_cast<double>(plan.batch) / seconds; }
};

// Runs of the three kinds take turns. Throws Error as Target::compile does. `traced`: with the plug-in's
// profiler, where it has one.
DeviceProfile measure_device_profile(const target::Target& target, const ProfiledModel& model,
                                     const ProfileSettings& settings, const target::Chips& chips,
                                     bool traced);

std::string device_profile_text(const DeviceProfile& profile);
std::vector<Metric> device_profile_metrics(const DeviceProfile& profile);
// profile.html and trace.json (the host's view), and device.xplane.pb where there is a trace. Gives their
// names.
std::vector<std::string> write_device_profile(const DeviceProfile& profile,
                                              const std::filesystem::path& folder);

}  // namespace superstep::lab
