// Bulk-synchronous machines as targets: a graph becomes compute sets and copies of room bsp/, and runs vertex
// by vertex on host cores, with modelled cycles.
#pragma once

#include <span>

#include "superstep/bsp/profile.h"
#include "superstep/machine/ipu/hardware.h"
#include "superstep/target/target.h"

namespace superstep::target::ipu {

// gc2, gc200 and bow, one chip each.
std::span<const Target* const> ipu_targets();

// The machine's numbers with the constants that its file has fitted, and those for planners: gc2, gc200, bow.
bsp::Target target_of(std::string_view machine, std::uint32_t chips = 1);
machine::ipu::Hardware hardware_of(std::string_view machine);

// What to do about a model that does not fit.
inline constexpr const char* what_helps_to_fit =
    "what may help: a smaller batch, --accumulate N for the same batch in smaller micro-batches, --precision "
    "bf16, "
    "more chips with --pipeline auto --units N; `superstep predict --largest` and `--recompute` say what "
    "would fit";

// The modelled profile of what such a target has run; null for an executable of another target.
const bsp::Profile* profile_of(const Executable& executable);

}  // namespace superstep::target::ipu
