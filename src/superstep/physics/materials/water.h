// Flexible water, SPC/Fw (Y. Wu, H. L. Tepper and G. A. Voth, J. Chem. Phys. 124, 024503 (2006)), in open
// space and without a cutoff.
//
// E = sum of k_OH/2 (r - r0)^2 over bonds + k_th/2 (theta - th0)^2 over angles within molecules, and between
// molecules Coulomb's law of the charges and a Lennard-Jones term of the oxygens.
#pragma once

#include <span>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/file/atoms/configuration.h"

namespace superstep::data {

struct SpcFw {
  double bond_stiffness = 1059.162;  // kcal/mol/A^2, with the factor 1/2 in the energy
  double bond_length = 1.012;        // A
  double angle_stiffness = 75.90;    // kcal/mol/rad^2, with the factor 1/2 in the energy
  double angle_degrees = 113.24;
  double oxygen_charge = -0.82;  // e; a hydrogen has half of the opposite
  double sigma = 3.165492;       // A
  double epsilon = 0.1554253;    // kcal/mol
};

// Atoms stand as O H H of one molecule after the other: throws Error (invalid_argument) on another number of
// atoms. Energy in eV; writes the forces in eV/A.
double evaluate_water(const SpcFw& model, std::span<const Cartesian> positions, std::span<Cartesian> forces);

// Adds what bonds and angle of one molecule do to the forces on O, H, H (eV/A); returns their energy (eV).
double add_water_molecule(const SpcFw& model, std::span<const Cartesian> sites, std::span<Cartesian> forces);

std::vector<int> water_elements(int molecules);   // 8 1 1 8 1 1 ...
std::vector<double> water_masses(int molecules);  // g/mol

// Adds the O, H and H of an undistorted molecule of random orientation.
void add_random_molecule(const SpcFw& model, const Cartesian& oxygen, RandomStream& random,
                         std::vector<Cartesian>& positions);

// Undistorted molecules at random places and orientations in a ball of about the liquid's density, oxygens at
// least 2.5 A apart (the ball grows when there is no room).
std::vector<Cartesian> pack_water(const SpcFw& model, int molecules, RandomStream& random);

}  // namespace superstep::data
