// Times of the engine's kernels on this machine, from the steps of probes.
#pragma once

#include <functional>
#include <string>

#include "superstep/machine/processor/kernel_times.h"
#include "superstep/target/target.h"

namespace superstep::lab {

struct KernelMeasurementSettings {
  int threads = 1;
  std::uint64_t probes = 120;     // of probe_count
  double seconds_a_probe = 0.25;  // of timed work, with each number of threads
  machine::ThreadPeaks peaks;     // that excesses are counted over
  std::function<void(const std::string& what)> progress = {};
};

// Takes a minute or two. Throws Error (interrupted).
machine::ProcessorTimes measure_kernels(const KernelMeasurementSettings& settings);

// What a plan can be timed with: random numbers, integers that are 0 (rows that are there), and for a
// training step a learning rate that leaves the weights where they are.
std::vector<Tensor> random_inputs(const target::Executable& executable, bool trains);

}  // namespace superstep::lab
