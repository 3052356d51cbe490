// Bulk-synchronous machines as targets: a graph becomes compute sets and copies of room bsp/, and runs vertex
// by vertex on host cores, with modelled cycles.
#pragma once

#include <string>

#include "superstep/bsp/profile/profile.h"
#include "superstep/machine/ipu/hardware.h"
#include "superstep/target/target.h"

namespace superstep::target::ipu {

// gc200 with passes left out (prepare.h), by name. Throws Error (invalid_argument) on a name of none, and on
// a pass that is required, with the reason.
std::unique_ptr<const Target> gc200_without(std::vector<std::string> passes);

// The machine's numbers with the constants that its file has fitted, and those for planners: gc2, gc200, bow.
bsp::Device device_of(std::string_view machine, std::uint32_t chips = 1);
machine::ipu::Hardware hardware_of(std::string_view machine);

// What to do about a model that does not fit with so many samples through it at a time.
std::string what_helps_to_fit(std::int64_t micro_batch);

// The modelled profile of what such a device has run; null for an executable of another device.
const bsp::Profile* profile_of(const Executable& executable);

}  // namespace superstep::target::ipu
