// The rings of a molecule as chemists count them.
#pragma once

#include <vector>

#include "superstep/physics/chemistry/molecule.h"

namespace superstep::data {

// A smallest set of smallest rings: as many as there are independent cycles, each as short as it can be, the
// shortest first (J. Horton, SIAM J. Comput. 16, 358 (1987)). A ring is its atoms in the order of its bonds.
using Ring = std::vector<int>;
std::vector<Ring> smallest_rings(const Molecule& molecule);

}  // namespace superstep::data
