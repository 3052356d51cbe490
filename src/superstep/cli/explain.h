// A compiled plan as text, for --explain.
#pragma once

#include <string>

#include "superstep/target/target.h"

namespace superstep::cli {

std::string explain(const target::PlanSummary& plan);

}  // namespace superstep::cli
