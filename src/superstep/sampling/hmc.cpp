// Hamiltonian transitions of a fixed number of steps.
#include <algorithm>
#include <cmath>

#include "superstep/sampling/transition.h"

namespace superstep::sampling {

Transition move_by_hmc(const Motion& motion, int steps, RandomStream& random, PhasePoint& point) {
  Transition told;
  draw_momentum(random, motion.inverse_mass, point.momentum);
  PhasePoint end = point;
  const double first = energy(point, motion.inverse_mass);
  double above = 0;
  while (told.evaluations < steps && !told.divergent) {
    leapfrog(motion.density, motion.inverse_mass, motion.step, end);
    ++told.evaluations;
    above = energy(end, motion.inverse_mass) - first;
    told.divergent = !(above <= divergence);
  }
  told.acceptance = told.divergent ? 0 : std::min(1.0, std::exp(-above));
  told.moved = random.uniform() < told.acceptance;
  if (told.moved) std::swap(point, end);
  told.energy = energy(point, motion.inverse_mass);
  return told;
}

double reasonable_step(LogDensity& density, std::span<const double> inverse_mass, double start,
                       RandomStream& random, const PhasePoint& point) {
  constexpr double wanted = 0.8, least = 1e-10, most = 1e7;
  double step = start;
  int direction = 0;  // 1: longer, -1: shorter
  while (step > least && step < most) {
    PhasePoint end = point;
    draw_momentum(random, inverse_mass, end.momentum);
    const double first = energy(end, inverse_mass);
    leapfrog(density, inverse_mass, step, end);
    const double gain = first - energy(end, inverse_mass);
    const int now = gain > std::log(wanted) ? 1 : -1;
    if (direction == 0) direction = now;
    if (now != direction) break;
    step *= direction > 0 ? 2 : 0.5;
  }
  return step;
}

}  // namespace superstep::sampling
