// Flexible water (SPC/Fw, physics/materials/water.h) as a force field: in open space without a cutoff, in a
// periodic box with damped shifted Coulomb forces (C. J. Fennell and J. D. Gezelter, J. Chem. Phys. 124,
// 234104 (2006)).
//
// Charges at r < cutoff: q_i q_j [erfc(alpha r)/r - e - f r], with e and f such that energy and force end at
// zero; to each charge belongs the energy of its own screening charge, -q^2 (e/2 + alpha/sqrt(pi)), and
// between atoms of a molecule, which do not feel each other's charge, 1/r is taken away from the bracket.
#pragma once

#include <memory>

#include "superstep/md/forces/force_field.h"
#include "superstep/physics/materials/water.h"

namespace superstep::md {

struct WaterSettings {
  data::SpcFw model;
  data::SmoothCutoff end{7.875, 9};  // A: of the oxygens' Lennard-Jones term; charges end at its cutoff
  double damping = 0.2;              // alpha, 1/A
};

// Molecules are found by distance: every oxygen has two hydrogens nearer than 1.35 A. Atoms of `start` are
// moved by whole edges of the box so that molecules are whole. Throws Error (invalid_argument) that names the
// atom where that is not so, or an element that is neither.
std::unique_ptr<ForceField> make_water(const WaterSettings& settings, data::Configuration& start);

}  // namespace superstep::md
