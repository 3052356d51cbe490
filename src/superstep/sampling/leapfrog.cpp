#include "superstep/sampling/leapfrog.h"

#include <cmath>

namespace superstep::sampling {
namespace {

void kick(PhasePoint& point, double time) {
  for (std::size_t i = 0; i < point.momentum.size(); ++i) point.momentum[i] += time * point.gradient[i];
}

}  // namespace

void evaluate(LogDensity& density, PhasePoint& point) {
  point.log_density = density.evaluate(point.position, point.gradient);
}

void leapfrog(LogDensity& density, std::span<const double> inverse_mass, double step, PhasePoint& point) {
  kick(point, step / 2);
  for (std::size_t i = 0; i < point.position.size(); ++i)
    point.position[i] += step * inverse_mass[i] * point.momentum[i];
  evaluate(density, point);
  kick(point, step / 2);
}

double kinetic_energy(std::span<const double> momentum, std::span<const double> inverse_mass) {
  double sum = 0;
  for (std::size_t i = 0; i < momentum.size(); ++i) sum += inverse_mass[i] * momentum[i] * momentum[i];
  return sum / 2;
}

double energy(const PhasePoint& point, std::span<const double> inverse_mass) {
  return kinetic_energy(point.momentum, inverse_mass) - point.log_density;
}

void draw_momentum(RandomStream& random, std::span<const double> inverse_mass, std::span<double> momentum) {
  for (std::size_t i = 0; i < momentum.size(); ++i)
    momentum[i] = random.normal() / std::sqrt(inverse_mass[i]);
}

}  // namespace superstep::sampling
