// What each step of a plan takes here, from runs of a plan that was compiled to measure its steps.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "superstep/machine/processor/kernel_times.h"
#include "superstep/target/target.h"

namespace superstep::lab {

// The best mean of a step's executions within a run, over the runs that were added.
class BestSteps {
 public:
  void add(const target::Timeline& timeline);
  // Of the steps that were executed, in the order of the plan's prepare, steps and update.
  std::vector<machine::KernelTime> times(const target::PlanSummary& plan) const;

 private:
  std::vector<target::PlanStep> steps_;
  std::vector<double> sums_, counts_, best_;
};

// Seconds of a step of a plan by measured steps, as they were described; 0: none like it was executed.
class KnownSteps {
 public:
  explicit KnownSteps(const std::vector<machine::KernelTime>& measured);
  double seconds(const machine::KernelTime& step) const;

 private:
  struct Same {
    std::string kernel;
    double flops = 0, bytes = 0;
    auto operator<=>(const Same&) const = default;
  };
  std::map<Same, std::pair<double, int>> known_;
};

// Steps of runs of `clocked` (compiled with measure_steps) for at least so many seconds. Inputs as in
// random_inputs. Throws Error (interrupted).
KnownSteps measure_steps(target::Executable& clocked, bool trains, double seconds);

}  // namespace superstep::lab
