// The parts of a superstep that every planner adds up: exchange, barrier, rearrangement.
#pragma once

#include "superstep/machine/ipu/hardware.h"
#include "superstep/machine/ipu/plan.h"

namespace superstep::machine::ipu {

// Cycles in which a tile receives `bytes`: ceil(16 bytes / round(16 rate)), the planner's fixed-point form.
std::int64_t exchange_cycles(double bytes, std::int64_t rate);

// A compute set of `compute` cycles on the slowest tile that first receives `bytes`.
Cycles superstep_cycles(const Hardware& hardware, double compute, double bytes);

// An exchange phase alone.
Cycles exchange_phase(const Hardware& hardware, double bytes);

// A copy that reorders `bytes` of the fullest tile, which are of atoms of `atom` bytes: the finer, the
// slower.
Cycles rearrange_cycles(const Hardware& hardware, double bytes, std::int64_t atom);

// The code around an operator.
Cycles program_cycles(const Hardware& hardware);

}  // namespace superstep::machine::ipu
