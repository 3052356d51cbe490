// Numbers that stand in for quantum-chemical descriptors of a molecule. They follow from electronegativities
// and sizes of the atoms alone and are surrogates: in units and ranges like the real ones, not their values.
#pragma once

#include <array>
#include <vector>

#include "superstep/physics/chemistry/molecule.h"

namespace superstep::data {

// Partial charges (e) by iterated equalisation of electronegativity over bonds, halved each round (in the
// manner of J. Gasteiger and M. Marsili, Tetrahedron 36, 3219 (1980)); formal charges stay in the sum.
std::vector<double> partial_charges(const Molecule& molecule);

// A shift (ppm) for every atom: by its hybridisation, moved by its charge.
std::vector<double> surrogate_shifts(const Molecule& molecule);

inline constexpr int global_descriptor_count = 8;
inline constexpr std::array<const char*, global_descriptor_count> global_descriptor_names = {
    "HOMO_energy", "LUMO_energy", "dipole_moment", "electronegativity",
    "hardness",    "volume",      "molar_mass",    "polar_atoms"};
// Of the whole molecule (eV, eV, debye, eV, eV, A^3, g/mol, fraction); zeros for a molecule without atoms.
std::array<double, global_descriptor_count> global_descriptors(const Molecule& molecule);

// What stands for a molecule in a role of a reaction: the global descriptors, then charge and shift of the
// atoms by falling charge, zeros beyond the last one.
inline constexpr int described_atoms = 24;
inline constexpr int role_descriptor_count = global_descriptor_count + 2 * described_atoms;
struct AtomDescriptors {
  double charge = 0, shift = 0;  // e, ppm
  friend auto operator<=>(const AtomDescriptors&, const AtomDescriptors&) = default;
};
std::vector<float> role_descriptors(const std::array<double, global_descriptor_count>& globals,
                                    std::vector<AtomDescriptors> atoms);
std::vector<float> role_descriptors(const Molecule& molecule);

}  // namespace superstep::data
