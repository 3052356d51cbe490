#include "superstep/cli/shared/explain.h"

#include "superstep/lab/profile/explain.h"

namespace superstep::cli {

std::string explain(const target::PlanSummary& plan) {
  if (!lab::is_timed(plan)) return lab::explain(plan, nullptr);
  const lab::MachineFloor machine = lab::measure_floor(plan.threads);
  return lab::explain(plan, &machine);
}

}  // namespace superstep::cli
