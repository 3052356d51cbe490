// The finite-volume solve that the conductivity network replaces, for every image of a file.
#pragma once

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

Entry conductivity_solver();

}  // namespace superstep::baseline
