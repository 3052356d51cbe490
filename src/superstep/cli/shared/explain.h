// A compiled plan as text, for --explain: beside the floor, which it measures where the plan's steps were
// timed.
#pragma once

#include <string>

#include "superstep/target/target.h"

namespace superstep::cli {

std::string explain(const target::PlanSummary& plan);

// What works on it: "2 threads", "1 device".
std::string workers_of(const target::PlanSummary& plan);

}  // namespace superstep::cli
