#include "superstep/physics/materials/water.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/file/atoms/element.h"
#include "superstep/physics/materials/atomic_units.h"

namespace superstep::data {
namespace {

constexpr double radians_per_degree = std::numbers::pi / 180;

// The model in eV and A.
struct Parameters {
  explicit Parameters(const SpcFw& model)
      : bond(model.bond_stiffness * ev_per_kcal_per_mol),
        length(model.bond_length),
        angle(model.angle_stiffness * ev_per_kcal_per_mol),
        theta(model.angle_degrees * radians_per_degree),
        sigma_squared(model.sigma * model.sigma),
        epsilon(model.epsilon * ev_per_kcal_per_mol) {
    const double charges[3] = {model.oxygen_charge, -model.oxygen_charge / 2, -model.oxygen_charge / 2};
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b) coulomb[3 * a + b] = coulomb_ev_angstrom * charges[a] * charges[b];
  }
  double bond, length, angle, theta, sigma_squared, epsilon;
  double coulomb[9];  // of each pair of sites, eV A
};

double add_bond(const Parameters& p, const Cartesian& r, Cartesian& force_o, Cartesian& force_h) {
  const double length = norm(r), stretch = length - p.length;
  const Cartesian force = r * (p.bond * stretch / length);
  force_o += force;
  force_h -= force;
  return p.bond / 2 * stretch * stretch;
}

double add_angle(const Parameters& p, const Cartesian& r1, const Cartesian& r2, std::span<Cartesian> forces) {
  const double a = norm(r1), b = norm(r2);
  const double cosine = std::clamp(dot(r1, r2) / (a * b), -1.0, 1.0), theta = std::acos(cosine);
  const double sine = std::max(std::sqrt(1 - cosine * cosine), 1e-9);
  const double slope = p.angle * (theta - p.theta);  // dE/dtheta
  const Cartesian f1 = slope / (a * sine) * (r2 * (1 / b) - cosine / a * r1);
  const Cartesian f2 = slope / (b * sine) * (r1 * (1 / a) - cosine / b * r2);
  forces[1] += f1;
  forces[2] += f2;
  forces[0] -= f1 + f2;
  return slope * (theta - p.theta) / 2;
}

double add_molecule(const Parameters& p, std::span<const Cartesian> sites, std::span<Cartesian> forces) {
  const Cartesian r1 = sites[1] - sites[0], r2 = sites[2] - sites[0];
  return add_bond(p, r1, forces[0], forces[1]) + add_bond(p, r2, forces[0], forces[2]) +
         add_angle(p, r1, r2, forces);
}

double add_pair(const Parameters& p, const Cartesian* one, const Cartesian* other, Cartesian* force_one,
                Cartesian* force_other) {
  double energy = 0;
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      const Cartesian r = other[b] - one[a];
      const double inverse = 1 / dot(r, r);
      const double coulomb = p.coulomb[3 * a + b] * std::sqrt(inverse);
      energy += coulomb;
      double pull = -coulomb * inverse;  // dE/dr / r
      if (a == 0 && b == 0) {
        const double s2 = p.sigma_squared * inverse, s6 = s2 * s2 * s2;
        energy += 4 * p.epsilon * s6 * (s6 - 1);
        pull -= 24 * p.epsilon * s6 * (2 * s6 - 1) * inverse;
      }
      const Cartesian force = pull * r;
      force_one[a] += force;
      force_other[b] -= force;
    }
  return energy;
}

Cartesian random_direction(RandomStream& random) {
  for (;;) {
    const double x = random.uniform(-1, 1), y = random.uniform(-1, 1), z = random.uniform(-1, 1);
    const double square = x * x + y * y + z * z;
    if (square > 1e-4 && square <= 1) return Cartesian{x, y, z} * (1 / std::sqrt(square));
  }
}

// A point of the unit ball, each volume as likely.
Cartesian random_point(RandomStream& random) {
  return std::cbrt(random.uniform()) * random_direction(random);
}

}  // namespace

double evaluate_water(const SpcFw& model, std::span<const Cartesian> positions, std::span<Cartesian> forces) {
  if (positions.size() % 3 != 0 || forces.size() != positions.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} atoms are not whole water molecules", positions.size()));
  const Parameters p(model);
  std::ranges::fill(forces, Cartesian{});
  double energy = 0;
  for (std::size_t i = 0; i < positions.size(); i += 3) {
    energy += add_molecule(p, positions.subspan(i, 3), forces.subspan(i, 3));
    for (std::size_t j = i + 3; j < positions.size(); j += 3)
      energy += add_pair(p, &positions[i], &positions[j], &forces[i], &forces[j]);
  }
  return energy;
}

double add_water_molecule(const SpcFw& model, std::span<const Cartesian> sites, std::span<Cartesian> forces) {
  return add_molecule(Parameters(model), sites, forces);
}

std::vector<int> water_elements(int molecules) {
  std::vector<int> elements;
  for (int i = 0; i < molecules; ++i) elements.insert(elements.end(), {8, 1, 1});
  return elements;
}

std::vector<double> water_masses(int molecules) {
  std::vector<double> masses;
  for (const int element : water_elements(molecules)) masses.push_back(element_mass(element));
  return masses;
}

void add_random_molecule(const SpcFw& model, const Cartesian& oxygen, RandomStream& random,
                         std::vector<Cartesian>& positions) {
  const Cartesian bisector = random_direction(random);
  Cartesian side = cross(bisector, random_direction(random));
  side *= 1 / std::max(norm(side), 1e-6);
  const double half = model.angle_degrees / 2 * radians_per_degree;
  const Cartesian along = model.bond_length * std::cos(half) * bisector,
                  across = model.bond_length * std::sin(half) * side;
  positions.insert(positions.end(), {oxygen, oxygen + along + across, oxygen + along - across});
}

std::vector<Cartesian> pack_water(const SpcFw& model, int molecules, RandomStream& random) {
  constexpr double volume = 30, least_distance = 2.5, growth = 1.01;  // A^3 a molecule, A
  constexpr int tries = 50;
  double radius = std::cbrt(volume * molecules * 3 / (4 * std::numbers::pi));
  std::vector<Cartesian> positions;
  for (int placed = 0; placed < molecules; ++placed) {
    Cartesian oxygen;
    const auto is_near = [&] {
      for (std::size_t i = 0; i < positions.size(); i += 3)
        if (norm(positions[i] - oxygen) < least_distance) return true;
      return false;
    };
    int tried = 0;
    do {
      if (++tried % tries == 0) radius *= growth;
      oxygen = radius * random_point(random);
    } while (is_near());
    add_random_molecule(model, oxygen, random, positions);
  }
  return positions;
}

}  // namespace superstep::data
