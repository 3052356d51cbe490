// The frame of a molecule: its rings and what links them.
#pragma once

#include <string>

#include "superstep/physics/chemistry/molecule.h"

namespace superstep::data {

// What is left when ends are cut off again and again, hydrogens in their place (G. W. Bemis and M. A. Murcko,
// J. Med. Chem. 39, 2887 (1996)); nothing of a molecule without rings.
Molecule scaffold(const Molecule& molecule);

// Its canonical SMILES: molecules of one series have the same. Empty of a molecule without rings.
std::string scaffold_smiles(const Molecule& molecule);

}  // namespace superstep::data
