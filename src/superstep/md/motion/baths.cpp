#include "superstep/md/motion/baths.h"

#include <algorithm>
#include <cmath>

#include "superstep/physics/materials/atomic_units.h"

namespace superstep::md {
namespace {

// A number of the gamma distribution of shape >= 1.
double gamma_number(double shape, RandomStream& random) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - random.uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace

double sum_of_squares(double count, RandomStream& random) {
  double sum = 0;
  // Two squares have a gamma distribution of shape 1: fewer are drawn one by one.
  if (count < 2) {
    for (; count >= 1; --count) {
      const double x = random.normal();
      sum += x * x;
    }
    return sum;
  }
  return 2 * gamma_number(count / 2, random);
}

double rescaling_factor(double kinetic, double target, double freedoms, double kept, RandomStream& random) {
  if (!(kinetic > 0) || !(freedoms > 0)) return 1;
  const double first = random.normal(), others = sum_of_squares(freedoms - 1, random);
  const double renewed = (1 - kept) * target / (freedoms * kinetic);
  const double square = kept + renewed * (first * first + others) + 2 * first * std::sqrt(kept * renewed);
  const double sign = first + std::sqrt(kept / std::max(renewed, 1e-300)) >= 0 ? 1 : -1;
  return sign * std::sqrt(std::max(square, 0.0));
}

void refresh_velocities(data::MotionState& state, double kept, double kelvin, std::uint64_t seed,
                        std::uint64_t step, ThreadPool& pool) {
  constexpr std::int64_t block = 64;
  const auto atoms = static_cast<std::int64_t>(state.masses.size());
  const double renewed = std::sqrt(1 - kept * kept);
  pool.parallel_for((atoms + block - 1) / block, [&](std::int64_t item, int) {
    RandomStream random(seed, step, purpose::langevin + static_cast<std::uint32_t>(item));
    for (std::int64_t i = item * block; i < std::min(atoms, (item + 1) * block); ++i) {
      const auto atom = static_cast<std::size_t>(i);
      const double speed =
          std::sqrt(data::boltzmann_ev_per_kelvin * kelvin * data::acceleration_unit / state.masses[atom]);
      const double x = random.normal(), y = random.normal(), z = random.normal();
      state.velocities[atom] = kept * state.velocities[atom] + renewed * speed * data::Cartesian{x, y, z};
    }
  });
}

// In x = ln V the ensemble has the density exp(-(H + P0 V)/kT) V, whose slope is V (P - P0)/kT + 1; Brownian
// motion in it with D = kT beta/(V tau) drifts by D V (P - P0)/kT + D + dD/dx, and dD/dx = -D.
double volume_step(const Protocol& protocol, double pressure, double volume, RandomStream& random) {
  const double rate = protocol.compressibility / protocol.pressure_time * protocol.timestep;
  const double thermal = data::boltzmann_ev_per_kelvin * protocol.kelvin;
  return rate * (pressure - protocol.pressure) + std::sqrt(2 * thermal * rate / volume) * random.normal();
}

}  // namespace superstep::md
