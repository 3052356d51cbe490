// SMILES, the line notation of molecules (Weininger, J. Chem. Inf. Comput. Sci. 28, 31 (1988); OpenSMILES
// specification 1.0).
//
// Read: the organic subset, bracket atoms (isotope, H count, charge, atom class), rings (0-9, %nn, %(nnn)),
// branches, aromatic lower case (b c n o p s se as te), `*` and `.`. Stereochemistry (@, /, \) is read and
// dropped. Aromaticity is taken as it is written; a bond without a symbol between aromatic atoms is aromatic
// when it lies on a ring of aromatic atoms, else single (the bond between the rings of biphenyl).
// Text may be anything: reading never fails otherwise than by an Error, in time linear in its length.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "superstep/physics/chemistry/molecule.h"

namespace superstep::data {

// The molecule, its atoms in the order they are written, rings and conjugation perceived. Throws Error
// (invalid_argument) that names the character (counted from 1) and the text.
Molecule parse_smiles(std::string_view smiles);

// Hydrogens that SMILES implies on an atom written without brackets; nothing when the element is outside the
// organic subset or has more bonds than it can have.
std::optional<int> implied_hydrogens(const Molecule& molecule, int atom);

// One and the same text for every numbering of the same graph. Classes of equal atoms are told apart by
// iterated refinement and ties are broken by choice, which is exact but for cages of high symmetry
// (fullerenes, cubane skeletons); there the text still reads back as the same molecule.
std::string canonical_smiles(const Molecule& molecule);

// A text that reads back as the same molecule. Each part is begun at its atom of lowest rank, and neighbours
// are taken by rank; without ranks, in the order of the atoms.
std::string write_smiles(const Molecule& molecule, std::span<const int> ranks = {});

}  // namespace superstep::data
