// A compiled plan as text, for --explain: every step with its kernel, what it computes and moves, how long it
// took beside the least it could take, and why faster kernels were not taken.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "superstep/lab/profile/profile.h"

namespace superstep::lab {

// Whether steps of the plan were timed, so that a floor says something about them.
bool is_timed(const target::PlanSummary& plan);

// `machine` is the floor beside which times are set; null where the plan was not timed on this machine.
std::string explain(const target::PlanSummary& plan, const MachineFloor* machine);

// "depthwise: the groups have more than one channel" with the numbers of the steps (from 1) that it kept from
// a faster kernel: "2 to 5, 9". In the order in which they are first met, each once.
struct RefusedSteps {
  std::string refusal, steps;
};
std::vector<RefusedSteps> refused_steps(const std::vector<StepProfile>& steps);

}  // namespace superstep::lab
