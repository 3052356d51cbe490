// The profile as the values that programs ask a report for.
#pragma once

#include <poplar/ProfileValue.hpp>

#include "superstep/bsp/profile/profile.h"

namespace poplar::core {

// What the compiled graph takes: "graph", "target", "vertexTypes", "memory".
ProfileValue graph_profile(const superstep::bsp::CompilationProfile& compilation);
// What its runs took: "simulation" with the steps of its runs, in order.
ProfileValue execution_profile(const superstep::bsp::Profile& profile);

// A report's file, as libpva reads it.
std::string report_text(const superstep::bsp::Profile& profile, bool with_execution = true);

}  // namespace poplar::core
