// This computer beside the machines: the same model, trained or served by the CPU target, measured.
#pragma once

#include <vector>

#include "superstep/lab/advise/advise.h"

namespace superstep::lab {

// In f32 and bf16, with all of `settings.threads`; at the recipe's batch (training), at one sample and as
// many as are served at once (serving; for latency at one alone). Some seconds each.
std::vector<Measured> measure_here(const AdviseSettings& settings, double recipe_samples);

}  // namespace superstep::lab
