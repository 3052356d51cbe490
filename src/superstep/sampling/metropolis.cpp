// Random-walk Metropolis.
#include <algorithm>
#include <cmath>

#include "superstep/sampling/transition.h"

namespace superstep::sampling {

Transition move_by_metropolis(const Motion& motion, RandomStream& random, PhasePoint& point) {
  std::vector<double> proposal(point.position.size());
  for (std::size_t i = 0; i < proposal.size(); ++i)
    proposal[i] = point.position[i] + motion.step * std::sqrt(motion.inverse_mass[i]) * random.normal();
  const double value = motion.density.value(proposal);
  Transition told{.evaluations = 1};
  told.acceptance = std::isfinite(value) ? std::min(1.0, std::exp(value - point.log_density)) : 0;
  told.moved = random.uniform() < told.acceptance;
  if (told.moved) {
    point.position = std::move(proposal);
    point.log_density = value;
  }
  told.energy = -point.log_density;
  return told;
}

}  // namespace superstep::sampling
