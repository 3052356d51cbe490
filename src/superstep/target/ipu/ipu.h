// Bulk-synchronous machines as targets: a graph becomes compute sets and copies of room bsp/, and runs vertex
// by vertex on host cores, with modelled cycles.
#pragma once

#include <span>

#include "superstep/bsp/profile.h"
#include "superstep/target/target.h"

namespace superstep::target::ipu {

// gc2, gc200 and bow, one chip each.
std::span<const Target* const> ipu_targets();

// The modelled profile of what such a target has run; null for an executable of another target.
const bsp::Profile* profile_of(const Executable& executable);

}  // namespace superstep::target::ipu
