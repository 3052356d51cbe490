// A whole machine of which a data sheet alone is known: what the sheet says, and a family's defaults, each
// marked as a guess.
#pragma once

#include <string>

#include "superstep/machine/machine.h"
#include "superstep/machine/rates/machines.h"

namespace superstep::machine {

// Whether one can be made: machines whose kernels stream from memory beside the chip, one after the other.
bool can_be_made(const MachineFacts& facts);
// Throws Error (unsupported) where it cannot.
Machine machine_of(const SheetFacts& sheet);

}  // namespace superstep::machine
