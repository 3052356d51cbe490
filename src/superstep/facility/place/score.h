// How good a placement is: first how far it is from what is wanted, then what it is chosen for.
#pragma once

#include <string>
#include <vector>

#include "superstep/facility/simulate/simulation.h"

namespace superstep::facility {

// What placements are chosen for, once every target is met.
enum class Aim { end, latency, cost, energy };
const std::vector<std::string>& aim_names();
Aim aim_from_name(const std::string& name);  // throws Error (invalid_argument), nearest name

struct Score {
  double excess = 0;  // sum over targets of the logarithm of how many times their limit; 0: all are met
  double value = 0;   // s, money or J

  bool operator<(const Score& other) const {
    return excess != other.excess ? excess < other.excess : value < other.value;
  }
};

// The task whose items' times are the latency: the one that a target of latency is about, else the last one
// in order.
int task_of_latency(const Workflow& workflow);
// What is aimed at, as a target without a limit.
Target target_of(const Workflow& workflow, Aim aim);

Score score_of(const Workflow& workflow, Aim aim, const Simulated& simulated);
// Of figures that are as long as the workflow's targets, and of the aim's.
Score score_of(const Workflow& workflow, const std::vector<double>& figures, double value);

}  // namespace superstep::facility
