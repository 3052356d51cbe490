// Which instruction sets the kernels of this program were compiled for, beside those of the processor.
#pragma once

#include <optional>
#include <span>

#include "superstep/base/system/instruction_set.h"

namespace superstep {

// The processor's widest set, where a program whose kernels were compiled for `built` lacks it. Both
// narrowest first and never empty.
std::optional<InstructionSet> widest_given_away(std::span<const InstructionSet> processor,
                                                std::span<const InstructionSet> built);

// The same of this program on this processor: of a build for another machine alone
// (SUPERSTEP_KERNELS=native).
std::optional<InstructionSet> widest_given_away();

}  // namespace superstep
