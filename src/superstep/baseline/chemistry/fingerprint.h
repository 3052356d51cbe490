// Circular fingerprints of molecules: how often each neighbourhood of an atom occurs.
#pragma once

#include <vector>

#include "superstep/physics/chemistry/molecule.h"

namespace superstep::baseline {

// Counts of atom environments of 0 to `radius` bonds, each put into one of `bins` by a hash of elements,
// hydrogens, charges, rings and bond orders (H. L. Morgan, J. Chem. Doc. 5, 107 (1965); D. Rogers and M.
// Hahn, J. Chem. Inf. Model. 50, 742 (2010)). The order of atoms and bonds does not matter. The sum is atoms
// x (radius + 1).
std::vector<float> morgan_fingerprint(const data::Molecule& molecule, int radius, int bins);

}  // namespace superstep::baseline
