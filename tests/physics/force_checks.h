// Checks that every force field must pass, whatever it is made of.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/physics/materials/molecular_dynamics.h"

namespace superstep::data {

// Largest difference between the forces and central differences of the energy, relative to the largest force.
inline double force_error(const std::vector<Cartesian>& positions, ForceField field, double step = 1e-4) {
  std::vector<Cartesian> forces(positions.size()), scratch(positions.size()), moved = positions;
  field(positions, forces);
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < positions.size(); ++i)
    for (double Cartesian::*axis : {&Cartesian::x, &Cartesian::y, &Cartesian::z}) {
      moved[i].*axis = positions[i].*axis + step;
      const double above = field(moved, scratch);
      moved[i].*axis = positions[i].*axis - step;
      const double below = field(moved, scratch);
      moved[i].*axis = positions[i].*axis;
      error = std::max(error, std::abs(forces[i].*axis + (above - below) / (2 * step)));
      largest = std::max(largest, std::abs(forces[i].*axis));
    }
  return error / largest;
}

// A rotation by random Euler angles.
inline std::array<Cartesian, 3> random_rotation(std::uint64_t seed) {
  RandomStream random(seed);
  Cartesian a{random.normal(), random.normal(), random.normal()},
      b{random.normal(), random.normal(), random.normal()};
  a *= 1 / norm(a);
  b -= dot(a, b) * a;
  b *= 1 / norm(b);
  return {a, b, cross(a, b)};
}

inline Cartesian rotated(const std::array<Cartesian, 3>& rows, const Cartesian& v) {
  return {dot(rows[0], v), dot(rows[1], v), dot(rows[2], v)};
}

}  // namespace superstep::data
