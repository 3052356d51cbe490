#include "superstep/lab/bench/timeline.h"

namespace superstep::lab {

std::vector<record::TimelineEvent> record_timeline(FunctionRef<void()> call,
                                                   FunctionRef<target::PlanSummary()> summary) {
  constexpr int calls = 20;
  for (int i = 0; i < calls; ++i) call();
  std::vector<record::TimelineEvent> events;
  double at = 0;
  for (const target::PlanStep& step : summary().steps) {
    events.push_back(
        {step.node + " (" + step.kernel + ")", "compute", 0, at, step.seconds, step.flops, step.bytes});
    at += step.seconds;
  }
  return events;
}

}  // namespace superstep::lab
