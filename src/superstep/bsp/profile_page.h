// The parts of a profile's page, and the names that it gives to steps.
#pragma once

#include <cstdint>
#include <string>

#include "superstep/base/text.h"
#include "superstep/bsp/profile.h"
#include "superstep/page/page.h"

namespace superstep::bsp {

void add_memory(page::Page& page, const CompilationProfile& compilation);
void add_liveness(page::Page& page, const CompilationProfile& compilation);
void add_timeline(page::Page& page, const Profile& profile);  // of the first run

// The operators that take most cycles over all runs, all their steps together.
void add_operators(page::Page& page, const Profile& profile);

// Cycles by phase, all runs; the phase that takes most stands out.
void add_phases(page::Page& page, const Profile& profile);

// The operator that a step is part of, which is told from others of its name: "conv2/Conv#17" of
// "conv2/Conv#17/combine". A step that is no part of an operator is its own.
std::string operator_of(const StepProfile& step);
// For people: "conv2 Conv", "conv2 Conv: combine", "patch, from the host".
std::string shown_name(const StepProfile& step);
std::string shown_operator(const StepProfile& step);

inline std::string count_text(std::uint64_t value) { return format_count(static_cast<double>(value)); }

}  // namespace superstep::bsp
