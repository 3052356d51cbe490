// Heat baths and the barostat: what they do to velocities and the box in one step.
#pragma once

#include "superstep/base/random.h"
#include "superstep/base/thread_pool.h"
#include "superstep/md/motion/protocol.h"
#include "superstep/physics/materials/molecular_dynamics.h"

namespace superstep::md {

// The sum of the squares of `count` normal numbers (G. Marsaglia and W. W. Tsang, ACM Trans. Math. Softw. 26,
// 363 (2000)). count >= 0.
double sum_of_squares(double count, RandomStream& random);

// The factor by which velocities are multiplied in a step of stochastic rescaling (Bussi et al. 2007,
// equation A7): `kept` = exp(-timestep / bath time), `target` the mean kinetic energy of `freedoms` degrees
// of freedom.
double rescaling_factor(double kinetic, double target, double freedoms, double kept, RandomStream& random);

// Replaces part of every velocity by a random one: v = kept v + sqrt(1 - kept^2) sqrt(kT/m) xi, with the
// random numbers of (seed, step, block of atoms).
void refresh_velocities(data::MotionState& state, double kept, double kelvin, std::uint64_t seed,
                        std::uint64_t step, ThreadPool& pool);

// The change of ln(volume) in a step of stochastic cell rescaling (M. Bernetti and G. Bussi, J. Chem. Phys.
// 153, 114107 (2020)): `pressure` is that of the atoms now, eV/A^3.
double volume_step(const Protocol& protocol, double pressure, double volume, RandomStream& random);

}  // namespace superstep::md
