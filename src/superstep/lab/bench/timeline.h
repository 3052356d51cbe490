// How long each step of a plan takes, for traces.
#pragma once

#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/record/result.h"
#include "superstep/target/target.h"

namespace superstep::lab {

// Calls something compiled with `measure_steps` a few times: its steps, each as long as it took on the
// average, one behind the other; of a plan in micro-batches those of one.
std::vector<record::TimelineEvent> record_timeline(FunctionRef<void()> call,
                                                   FunctionRef<target::PlanSummary()> summary);

}  // namespace superstep::lab
