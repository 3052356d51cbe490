#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/data/element.h"
#include "superstep/data/molecular_dynamics.h"
#include "superstep/data/radial_distribution.h"
#include "superstep/data/sutton_chen.h"
#include "tests/data/force_checks.h"

namespace superstep::data {
namespace {

Configuration rattled(Configuration crystal, double sd, std::uint64_t seed) {
  RandomStream random(seed);
  for (Vector3& p : crystal.positions) p += sd * Vector3{random.normal(), random.normal(), random.normal()};
  return crystal;
}

// Pairs by trying every image within reach.
std::size_t count_pairs_slowly(const Configuration& c, double cutoff) {
  std::size_t twice = 0;
  for (int x = -3; x <= 3; ++x)
    for (int y = -3; y <= 3; ++y)
      for (int z = -3; z <= 3; ++z)
        for (std::size_t i = 0; i < c.positions.size(); ++i)
          for (std::size_t j = 0; j < c.positions.size(); ++j) {
            if (i == j && x == 0 && y == 0 && z == 0) continue;
            const Vector3 r = c.positions[j] + c.cell->a * x + c.cell->b * y + c.cell->c * z - c.positions[i];
            twice += norm(r) < cutoff;
          }
  return twice / 2;
}

TEST(NeighborList, FindsEveryPairOnceInAnyBox) {
  RandomStream random(3);
  Configuration c;
  c.cell = Cell{{6, 0, 0}, {2, 5, 0}, {-1, 1.5, 7}};
  for (int i = 0; i < 20; ++i)
    c.positions.push_back({random.uniform(-10, 10), random.uniform(-3, 12), random.uniform(0, 30)});
  // Brought into the box for the slow count: the pairs are the same.
  Configuration inside = c;
  for (Vector3& p : inside.positions) {
    p -= std::floor(p.z / 7) * c.cell->c;
    p -= std::floor(p.y / 5) * c.cell->b;
    p -= std::floor(p.x / 6) * c.cell->a;
  }
  for (const double cutoff : {1.0, 2.4, 5.0, 9.0}) {
    const auto pairs = neighbor_pairs(c.positions, c.cell, cutoff);
    EXPECT_EQ(pairs.size(), count_pairs_slowly(inside, cutoff)) << cutoff;
    for (const auto& [i, j, shift] : pairs)
      EXPECT_LT(
          norm(c.positions[static_cast<std::size_t>(j)] + shift - c.positions[static_cast<std::size_t>(i)]),
          cutoff);
  }
  std::size_t open = 0;
  for (std::size_t i = 0; i < 20; ++i)
    for (std::size_t j = 0; j < i; ++j) open += norm(c.positions[i] - c.positions[j]) < 6;
  EXPECT_EQ(neighbor_pairs(c.positions, {}, 6).size(), open);
}

TEST(NeighborList, RefusesWhatHasNoPairs) {
  const std::vector<Vector3> one = {{0, 0, 0}};
  EXPECT_THROW(neighbor_pairs(one, Cell{}, 1), Error);
  EXPECT_THROW(neighbor_pairs(one, {}, 0), Error);
  EXPECT_THROW(
      neighbor_pairs(std::vector<Vector3>{{std::nan(""), 0, 0}}, Cell{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, 1),
      Error);
  EXPECT_TRUE(neighbor_pairs({}, {}, 1).empty());
}

// The published cohesive energies, as sums over the lattice up to ten lattice constants; and they are the
// lowest there: the pressure vanishes at the published lattice constant.
TEST(SuttonChen, LatticeSumsAreThePublishedEnergiesAndMinima) {
  const double published[] = {-3.340, -4.440, -3.500, -3.940, -2.960, -5.860, -3.780};
  for (std::size_t i = 0; i < 7; ++i) {
    const SuttonChen& metal = sutton_chen_metals()[i];
    const auto energy = [&](double strain) {
      // The same shells at every strain: the cutoff grows with the lattice.
      return sutton_chen_lattice_energy(metal, metal.a * (1 + strain), 10 * metal.a * (1 + strain));
    };
    EXPECT_NEAR(energy(0), published[i], 1e-3) << metal.symbol;
    EXPECT_LT(energy(0), energy(0.004)) << metal.symbol;
    EXPECT_LT(energy(0), energy(-0.004)) << metal.symbol;
    const double slope = (energy(1e-4) - energy(-1e-4)) / 2e-4;
    const double curvature = (energy(1e-4) - 2 * energy(0) + energy(-1e-4)) / 1e-8;
    const double minimum = -slope / curvature;  // strain at which the energy is least
    std::printf("%s: E %.4f eV, minimum at a (1 %+.5f)\n", metal.symbol.c_str(), energy(0), minimum);
    EXPECT_LT(std::abs(minimum), 1e-3) << metal.symbol;
  }
}

TEST(SuttonChen, PairsGiveTheLatticeSum) {
  const SuttonChen& copper = find_sutton_chen("Cu");
  const Configuration cell = face_centred_cubic(29, copper.a, 1);
  const SmoothCutoff sharp{4.2 * copper.a, 4.2 * copper.a};
  const auto pairs = neighbor_pairs(cell.positions, cell.cell, sharp.cutoff);
  const Evaluation made = evaluate_sutton_chen(copper, sharp, cell.positions, pairs);
  EXPECT_NEAR(made.energy / 4, sutton_chen_lattice_energy(copper, copper.a, sharp.cutoff), 1e-10);
  for (const Vector3& force : made.forces) EXPECT_LT(norm(force), 1e-10);
}

struct CopperField {
  const SuttonChen& metal = find_sutton_chen("Cu");
  SmoothCutoff cutoff{1.75 * metal.a, 2 * metal.a};
  VerletList list;
  explicit CopperField(const std::optional<Cell>& cell) : list(cell, cutoff.cutoff, 0.5) {}
  double operator()(std::span<const Vector3> positions, std::span<Vector3> forces) {
    Evaluation made = evaluate_sutton_chen(metal, cutoff, positions, list.pairs(positions));
    std::ranges::copy(made.forces, forces.begin());
    return made.energy;
  }
};

TEST(SuttonChen, ForcesAreDifferencesOfTheEnergy) {
  const Configuration c = rattled(face_centred_cubic(29, 3.61, 2), 0.2, 5);
  CopperField field(c.cell);
  EXPECT_LT(force_error(c.positions, field), 1e-6);
  // Negative control: forces off by one part in a thousand are seen.
  const auto wrong = [&](std::span<const Vector3> positions, std::span<Vector3> forces) {
    const double energy = field(positions, forces);
    for (Vector3& force : forces) force *= 1.001;
    return energy;
  };
  EXPECT_GT(force_error(c.positions, wrong), 1e-4);
}

TEST(SuttonChen, VirialIsTheDerivativeByStrain) {
  const Configuration c = rattled(face_centred_cubic(29, 3.61, 2), 0.2, 6);
  const SuttonChen& copper = find_sutton_chen("Cu");
  const SmoothCutoff cutoff{5, 6};
  const auto energy = [&](int row, int column, double strain) {
    Configuration s = c;
    const auto stretch = [&](Vector3& v) {
      const double from[3] = {v.x, v.y, v.z};
      double* to[3] = {&v.x, &v.y, &v.z};
      *to[row] += strain * from[column];
    };
    for (Vector3& p : s.positions) stretch(p);
    for (Vector3* edge : {&s.cell->a, &s.cell->b, &s.cell->c}) stretch(*edge);
    return evaluate_sutton_chen(copper, cutoff, s.positions, neighbor_pairs(s.positions, s.cell, 6)).energy;
  };
  const Evaluation made =
      evaluate_sutton_chen(copper, cutoff, c.positions, neighbor_pairs(c.positions, c.cell, 6));
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 3; ++column) {
      const double slope = (energy(row, column, 1e-5) - energy(row, column, -1e-5)) / 2e-5;
      EXPECT_NEAR(made.virial[static_cast<std::size_t>(3 * row + column)], -slope, 1e-5);
    }
}

TEST(SuttonChen, TurningMovingAndExchangingChangeNothing) {
  const Configuration c = rattled(face_centred_cubic(29, 3.61, 2), 0.2, 7);
  const SuttonChen& copper = find_sutton_chen("Cu");
  const SmoothCutoff cutoff{5, 6};
  const auto energy = [&](const Configuration& s) {
    return evaluate_sutton_chen(copper, cutoff, s.positions, neighbor_pairs(s.positions, s.cell, 6)).energy;
  };
  const auto rotation = random_rotation(1);
  Configuration turned = c;
  for (Vector3& p : turned.positions) p = rotated(rotation, p) + Vector3{3, -20, 7};
  turned.cell =
      Cell{rotated(rotation, c.cell->a), rotated(rotation, c.cell->b), rotated(rotation, c.cell->c)};
  std::swap(turned.positions[3], turned.positions[11]);
  EXPECT_NEAR(energy(turned), energy(c), 1e-9);
  Configuration changed = c;
  changed.positions[0].x += 0.01;
  EXPECT_GT(std::abs(energy(changed) - energy(c)), 1e-5);
}

// s(r)/r of the descriptor with rs .5 and rc 6, from the published form.
TEST(SmoothCutoffFunction, HasThePublishedValues) {
  const SmoothCutoff smooth{0.5, 6};
  const std::pair<double, double> values[] = {
      {1, .99347}, {2, .43554}, {3, .19492}, {4, .06418}, {5, .00898}};
  for (const auto& [r, value] : values) EXPECT_NEAR(smooth.value(r) / r, value, 5e-6) << r;
  EXPECT_EQ(smooth.value(0.4), 1);
  EXPECT_EQ(smooth.value(6), 0);
  EXPECT_NEAR(smooth.value(6 - 1e-6), 0, 1e-12);
  for (const double r : {0.7, 2.0, 5.5})
    EXPECT_NEAR(smooth.slope(r), (smooth.value(r + 1e-5) - smooth.value(r - 1e-5)) / 2e-5, 1e-8);
}

TEST(MolecularDynamics, EnergyIsKeptAndItsErrorIsOfSecondOrder) {
  const Configuration c = face_centred_cubic(29, 3.61, 3);
  const auto fluctuation = [&](double step, int steps) {
    CopperField field(c.cell);
    RandomStream random(8);
    MotionState state = start_motion(std::vector<double>(c.positions.size(), element_mass(29)), c.positions,
                                     900, random, field);
    double low = 1e9, high = -1e9, sum_first = 0, sum_last = 0;
    for (int i = 0; i < steps; ++i) {
      verlet_step(state, step, field);
      const double total = state.potential_energy + kinetic_energy(state);
      low = std::min(low, total);
      high = std::max(high, total);
      (i < steps / 2 ? sum_first : sum_last) += total;
    }
    const double drift = (sum_last - sum_first) / (steps / 2) / static_cast<double>(c.positions.size());
    EXPECT_LT(std::abs(drift), 2e-5) << "eV an atom over half of the run";
    return high - low;
  };
  const double coarse = fluctuation(4, 100), fine = fluctuation(2, 200);
  EXPECT_NEAR(coarse / fine, 4, 1.2);
}

TEST(MolecularDynamics, HeatBathHasItsTemperature) {
  const Configuration c = face_centred_cubic(29, 3.61, 2);
  CopperField field(c.cell);
  RandomStream random(9);
  MotionState state = start_motion(std::vector<double>(c.positions.size(), element_mass(29)), c.positions,
                                   300, random, field);
  double sum = 0;
  const int steps = 2500, warm_up = 300;
  for (int i = 0; i < steps + warm_up; ++i) {
    langevin_step(state, 3, 600, 0.02, random, field);
    if (i >= warm_up) sum += temperature(state) * (3.0 * 32 - 3) / (3.0 * 32);
  }
  EXPECT_NEAR(sum / steps, 600, 25);
}

TEST(RadialDistributionFunction, CountsTheShellsOfTheCrystal) {
  const Configuration c = rattled(face_centred_cubic(29, 3.61, 4), 0.05, 10);
  const RadialDistribution made = radial_distribution(c, 5, 500);
  const double density = 4 / std::pow(3.61, 3);
  EXPECT_NEAR(coordination_number(made, density, 3.1), 12, 1e-9);
  EXPECT_NEAR(coordination_number(made, density, 4.0), 18, 0.2);
  RandomStream random(4);
  Configuration gas{std::vector<int>(2000, 18), {}, Cell{{30, 0, 0}, {0, 30, 0}, {0, 0, 30}}};
  for (int i = 0; i < 2000; ++i)
    gas.positions.push_back({random.uniform(0, 30), random.uniform(0, 30), random.uniform(0, 30)});
  for (const double g : radial_distribution(gas, 10, 5).g) EXPECT_NEAR(g, 1, 0.06);
  EXPECT_THROW(radial_distribution({{29}, {{0, 0, 0}}, {}}, 5, 10), Error);
}

}  // namespace
}  // namespace superstep::data
