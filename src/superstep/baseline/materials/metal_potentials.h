// Classical potentials of metals with parameters that can be fitted: written for any number type, so that an
// automatic differentiation type gives the derivatives by the parameters.
//
// Both have the form E = sum over pairs of pair(r) - sum over atoms of sqrt(sum over neighbours of
// density(r)), each function multiplied by a smooth cutoff.
#pragma once

#include <cmath>
#include <vector>

#include "superstep/physics/materials/sutton_chen.h"

namespace superstep::baseline {

template <class T>
struct ValueAndSlope {
  T value, slope;
};

// J. E. Lennard-Jones 1924: 4 eps ((sigma/r)^12 - (sigma/r)^6); no density.
template <class T>
struct LennardJones {
  T epsilon, sigma;  // eV, A
  static constexpr bool has_density = false;
  ValueAndSlope<T> pair(double r) const {
    const T q = sigma / r, q2 = q * q, q6 = q2 * q2 * q2;
    return {4.0 * epsilon * q6 * (q6 - 1.0), -24.0 * epsilon * q6 * (2.0 * q6 - 1.0) / r};
  }
  ValueAndSlope<T> density(double) const { return {T(0.0), T(0.0)}; }
};

// Second-moment approximation of tight binding, for fcc metals (R. P. Gupta, Phys. Rev. B 23, 6265 (1981); F.
// Cleri and V. Rosato, Phys. Rev. B 48, 22 (1993)): A exp(-p(r/r0-1)) for each of the two atoms of a pair,
// and the density xi^2 exp(-2q(r/r0-1)).
template <class T>
struct Gupta {
  T a, p, xi, q;  // eV, 1, eV, 1
  double r0;      // A, the nearest-neighbour distance
  static constexpr bool has_density = true;
  ValueAndSlope<T> pair(double r) const {
    using std::exp;
    const T value = 2.0 * a * exp(-p * (r / r0 - 1));
    return {value, -p / r0 * value};
  }
  ValueAndSlope<T> density(double r) const {
    using std::exp;
    const T value = xi * xi * exp(-2.0 * q * (r / r0 - 1));
    return {value, -2.0 * q / r0 * value};
  }
};

// The pairs of one frame within the cutoff: what does not change while parameters do.
struct FramePair {
  int i, j;
  double r, cutoff, cutoff_slope;
  data::Cartesian direction;  // from i to j
};
std::vector<FramePair> frame_pairs(const data::Configuration& configuration,
                                   const data::SmoothCutoff& cutoff);

// Writes the forces, x y z of each atom, and returns the energy.
template <class T, class Potential>
T evaluate_potential(const Potential& potential, const std::vector<FramePair>& pairs,
                     std::vector<T>& forces) {
  using std::sqrt;
  const std::size_t atoms = forces.size() / 3;
  std::vector<T> density(atoms, T(0.0));
  T energy(0.0);
  std::vector<ValueAndSlope<T>> pair_slopes;
  for (const FramePair& each : pairs) {
    const auto [v, v_slope] = potential.pair(each.r);
    energy += v * each.cutoff;
    const auto [rho, rho_slope] = potential.density(each.r);
    if constexpr (Potential::has_density) {
      density[static_cast<std::size_t>(each.i)] += rho * each.cutoff;
      density[static_cast<std::size_t>(each.j)] += rho * each.cutoff;
    }
    pair_slopes.push_back(
        {v_slope * each.cutoff + v * each.cutoff_slope, rho_slope * each.cutoff + rho * each.cutoff_slope});
  }
  for (T& each : density) {
    if (!(each > 0.0)) continue;
    const T root = sqrt(each);
    energy -= root;
    each = 0.5 / root;  // from here on the slope of the embedding
  }
  for (T& each : forces) each = T(0.0);
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const auto i = static_cast<std::size_t>(pairs[k].i), j = static_cast<std::size_t>(pairs[k].j);
    const T slope = pair_slopes[k].value - (density[i] + density[j]) * pair_slopes[k].slope;
    const double direction[3] = {pairs[k].direction.x, pairs[k].direction.y, pairs[k].direction.z};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      forces[3 * i + axis] += slope * direction[axis];
      forces[3 * j + axis] -= slope * direction[axis];
    }
  }
  return energy;
}

}  // namespace superstep::baseline
