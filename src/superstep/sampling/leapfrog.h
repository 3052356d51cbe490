// Hamilton's equations in steps: position and momentum of a particle in the potential -log density.
//
// The leapfrog rule keeps volume and goes back the way it came; its error of the energy is of second order in
// the step (R. Neal, MCMC using Hamiltonian dynamics, Handbook of MCMC, 2011, eq. 5.18 to 5.20).
#pragma once

#include <span>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/sampling/log_density.h"

namespace superstep::sampling {

struct PhasePoint {
  std::vector<double> position, momentum, gradient;  // the gradient of the log density
  double log_density = 0;

  explicit PhasePoint(std::size_t size = 0) : position(size), momentum(size), gradient(size) {}
};

// Asks the density at the point's position.
void evaluate(LogDensity& density, PhasePoint& point);

// One step of length `step` (backwards where it is negative). `inverse_mass` is the diagonal of M^-1: about
// the variances of the density.
void leapfrog(LogDensity& density, std::span<const double> inverse_mass, double step, PhasePoint& point);

double kinetic_energy(std::span<const double> momentum, std::span<const double> inverse_mass);
// Of both, in nats.
double energy(const PhasePoint& point, std::span<const double> inverse_mass);

// Momentum from the normal distribution with the variances M.
void draw_momentum(RandomStream& random, std::span<const double> inverse_mass, std::span<double> momentum);

}  // namespace superstep::sampling
