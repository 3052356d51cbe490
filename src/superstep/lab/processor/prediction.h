// A run on a processor, predicted: the plan that would run, each step's time by the kernels' times in a
// machine file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "superstep/lab/processor/plan_time.h"
#include "superstep/machine/machine.h"

namespace superstep::lab {

struct ProcessorStep {
  target::PlanStep step;
  double seconds = 0;   // of an execution
  bool known = false;   // kernels of its family were measured
  double measured = 0;  // seconds of an execution here; 0: it was not run
};

struct ProcessorPrediction {
  target::PlanSummary plan;
  std::vector<ProcessorStep> steps;  // prepare, a micro-batch's, update
  PlanTime parts;
  double seconds = 0, uncertainty = 0;  // of a run; of its logarithm, 80 %
  double unknown_share = 0;             // of the time, in kernels of which none was measured
  double peak_seconds = 0, roofline_seconds = 0;
  double memory = 0, memory_limit = 0;  // bytes
  std::vector<std::string> beyond;      // in which ways it lies beyond what was measured

  bool fits() const { return memory <= memory_limit; }
};

// `plan` as target "cpu" compiled it on this computer. Throws Error (invalid_argument) when the machine has
// no times of kernels, (unsupported) when they are of other instructions than this computer's kernels use.
ProcessorPrediction predict_plan(const machine::Machine& machine, const target::PlanSummary& plan,
                                 bool trains);

// Fills in what each step takes here, from runs of the same plan compiled with measure_steps. Throws Error
// (interrupted).
void measure_steps_of(ProcessorPrediction& prediction, target::Executable& clocked, bool trains,
                      double seconds);

// Runs of the plan here, for at least so many seconds: what a prediction is held against. Random inputs;
// integers are 0.
struct MeasuredRuns {
  double best = 0, median = 0;  // s
  std::size_t runs = 0;
};
MeasuredRuns measure_runs(target::Executable& executable, bool trains, double seconds);

// This computer, where it was measured before and is the same still; nothing: it was not.
std::optional<machine::Machine> measured_computer(int threads);
// This computer as a machine: from the user's cache folder, or measured now and kept there. `progress` is
// told what is being measured.
machine::Machine this_computer(int threads, const std::function<void(const std::string& what)>& progress);

}  // namespace superstep::lab
