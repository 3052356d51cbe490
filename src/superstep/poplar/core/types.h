// Element types: those of the programs and those of the machine below.
#pragma once

#include <poplar/Type.hpp>

#include "superstep/bsp/graph/type.h"

namespace poplar::core {

// Of a type that has no values (a default-constructed Type) a type_error. LONG and UNSIGNED_LONG have 32
// bits, as on the device.
superstep::bsp::Type machine_type(const Type& type);

}  // namespace poplar::core
