// Motion of atoms under a force field: constant energy, or a heat bath. Units: A, fs, eV, g/mol.
#pragma once

#include <span>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/base/random.h"
#include "superstep/file/atoms/cartesian.h"

namespace superstep::data {

// Energy (eV) of the atoms at `positions`; writes the forces (eV/A).
using ForceField = FunctionRef<double(std::span<const Cartesian> positions, std::span<Cartesian> forces)>;

struct MotionState {
  std::vector<double> masses;  // g/mol
  std::vector<Cartesian> positions, velocities, forces;
  double potential_energy = 0;
};

// Velocities drawn from the Maxwell distribution at a temperature (K), the centre of mass at rest; forces
// and energy evaluated.
MotionState start_motion(std::vector<double> masses, std::vector<Cartesian> positions, double kelvin,
                         RandomStream& random, ForceField field);

double kinetic_energy(const MotionState& state);  // eV
double temperature(const MotionState& state);  // K, three degrees of freedom an atom less the centre of mass

// The parts that steps are made of: velocities by the forces, positions by the velocities.
void kick(MotionState& state, double femtoseconds);
void drift(MotionState& state, double femtoseconds);

// One step of the velocity Verlet method: reversible, energy error of second order in the step.
void verlet_step(MotionState& state, double femtoseconds, ForceField field);

// One step of Langevin dynamics in the BAOAB splitting (B. Leimkuhler and C. Matthews, Appl. Math. Res.
// Express 2013, 34): a heat bath of temperature `kelvin` that forgets velocities at rate `friction` (1/fs).
void langevin_step(MotionState& state, double femtoseconds, double kelvin, double friction,
                   RandomStream& random, ForceField field);

// Moves downhill until no force is larger than `force_limit` (eV/A) or `most_steps` evaluations were spent
// (FIRE: Bitzek et al., Phys. Rev. Lett. 97, 170201 (2006)). Returns the largest force that is left.
double relax(MotionState& state, double force_limit, int most_steps, ForceField field);

}  // namespace superstep::data
