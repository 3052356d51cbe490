// The time of a run of a CPU plan from the times of its steps: who works beside whom, and who waits for whom.
#pragma once

#include <functional>
#include <vector>

#include "superstep/machine/processor/kernel_times.h"
#include "superstep/target/target.h"

namespace superstep::lab {

// What a step's time depends on, as it runs within this plan; without the time.
machine::KernelTime asked_of(const target::PlanStep& step, const target::PlanSummary& plan);

// Seconds of one execution of a step.
using StepSeconds = std::function<double(const machine::KernelTime& step)>;

struct PlanTime {
  double prepare = 0, body = 0, update = 0;  // s of a run
  double executions = 0;                     // of steps, one after the other
  double total() const { return prepare + body + update; }
};

// Of a run that finds its plan warm: what depends on parameters alone is made anew only where they change, in
// training.
PlanTime plan_time(const target::PlanSummary& plan, bool trains, const StepSeconds& seconds);

}  // namespace superstep::lab
