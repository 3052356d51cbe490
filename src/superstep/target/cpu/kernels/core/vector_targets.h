// Choosing among the instruction sets that a kernel file was compiled for.
#pragma once

#include "superstep/target/cpu/kernels/core/instruction_set.h"

// A pointer to the function NAME (exported with HWY_EXPORT in this file) for the instruction set in force.
#define SUPERSTEP_VECTOR_FUNCTION(NAME) \
  (static_cast<void>(superstep::kernels::instruction_set()), &HWY_DYNAMIC_DISPATCH(NAME))
