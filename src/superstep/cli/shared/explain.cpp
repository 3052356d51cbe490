#include "superstep/cli/shared/explain.h"

#include <fmt/format.h>

#include "superstep/lab/profile/explain.h"

namespace superstep::cli {

std::string explain(const target::PlanSummary& plan) {
  if (!lab::is_timed(plan)) return lab::explain(plan, nullptr);
  const lab::MachineFloor machine = lab::measure_floor(plan.threads);
  return lab::explain(plan, &machine);
}

std::string workers_of(const target::PlanSummary& plan) {
  if (plan.devices > 0) return fmt::format("{} device{}", plan.devices, plan.devices == 1 ? "" : "s");
  return fmt::format("{} threads", plan.threads);
}

}  // namespace superstep::cli
