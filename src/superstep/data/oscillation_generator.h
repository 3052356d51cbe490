// Noisy oscillations seen by many sensors, each with a delay of its own (workload lstm).
#pragma once

#include "superstep/data/generator.h"

namespace superstep::data {

inline constexpr double slowest_oscillation = 1, fastest_oscillation = 5;  // periods in a whole sequence

GeneratorEntry oscillation_generator();  // "lstm"

}  // namespace superstep::data
