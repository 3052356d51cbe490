// The energy of a crystal by its volume, and what follows from it at rest.
#pragma once

#include <span>

#include "superstep/base/function_ref.h"

namespace superstep::baseline {

// A minimum of the energy over the volume: F. Birch, Phys. Rev. 71, 809 (1947).
struct CrystalAtRest {
  double lattice = 0;       // A: edge of the cubic cell
  double energy = 0;        // eV an atom
  double bulk_modulus = 0;  // GPa: V d2E/dV2
};

// Least squares of a + b x + c x^2 + d x^3, x = V^(-2/3) (Birch's third order), through energies an atom (eV)
// at volumes an atom (A^3), four or more. `atoms_a_cell` of the cubic cell: 4 of a face-centred one. Throws
// Error (diverged) where the energies have no minimum between the volumes.
CrystalAtRest fit_equation_of_state(std::span<const double> volumes, std::span<const double> energies,
                                    int atoms_a_cell);

// The same through the energies an atom (eV) of `points` face-centred cubic crystals whose lattice constants
// lie evenly within `reach` (a share) of `guess` (A).
CrystalAtRest face_centred_at_rest(FunctionRef<double(double lattice)> energy, double guess,
                                   double reach = 0.02, int points = 9);

}  // namespace superstep::baseline
