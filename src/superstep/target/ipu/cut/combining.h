// How partial results become one, and what that takes: in one step, or in two where there are many.
#pragma once

#include <cstdint>

#include "superstep/machine/ipu/hardware.h"

namespace superstep::target::ipu {

inline constexpr std::int64_t most_partials = 32;  // chosen: that are added in one step

// Of more: neighbours in so many groups are added first, then the groups' sums.
std::int64_t combined_groups(std::int64_t partials);

// The fewest results that are worth a tile of their own: the more there are to add, the fewer.
std::int64_t least_combined(std::int64_t partials);

// Cycles of all steps for `elements` results of f32 that have `partials` partial ones each. The tiles that
// made them share the work.
double combining_cycles(const machine::ipu::Hardware& hardware, std::int64_t elements, std::int64_t partials);

}  // namespace superstep::target::ipu
