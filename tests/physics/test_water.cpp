#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <numbers>
#include <sstream>

#include "superstep/base/error.h"
#include "superstep/file/atoms/element.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/materials/atomic_units.h"
#include "superstep/physics/materials/water.h"
#include "tests/expect_error.h"
#include "tests/physics/force_checks.h"
#include "tests/physics/workload_generators.h"
#include "tests/python.h"

namespace superstep::data {
namespace {

const SpcFw model;

double energy_of(const std::vector<Cartesian>& positions) {
  std::vector<Cartesian> forces(positions.size());
  return evaluate_water(model, positions, forces);
}

const auto spc_field = [](std::span<const Cartesian> positions, std::span<Cartesian> forces) {
  return evaluate_water(model, positions, forces);
};

std::vector<Cartesian> packed(int molecules, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<Cartesian> positions = pack_water(model, molecules, random);
  for (Cartesian& p : positions) p += 0.05 * Cartesian{random.normal(), random.normal(), random.normal()};
  return positions;
}

TEST(Water, MoleculeAtRestHasNoEnergy) {
  RandomStream random(1);
  EXPECT_NEAR(energy_of(pack_water(model, 1, random)), 0, 1e-12);
}

TEST(Water, ForcesAreDifferencesOfTheEnergy) { EXPECT_LT(force_error(packed(6, 2), spc_field), 1e-6); }

TEST(Water, TurningMovingAndExchangingChangeNothing) {
  const std::vector<Cartesian> cluster = packed(5, 3);
  const auto rotation = random_rotation(4);
  std::vector<Cartesian> turned;
  for (const Cartesian& p : cluster) turned.push_back(rotated(rotation, p) + Cartesian{10, -4, 2});
  std::swap(turned[1], turned[2]);  // the hydrogens of one molecule
  for (std::size_t k = 0; k < 3; ++k) std::swap(turned[3 + k], turned[12 + k]);  // two molecules
  EXPECT_NEAR(energy_of(turned), energy_of(cluster), 1e-9);
  std::swap(turned[0], turned[1]);  // an oxygen is no hydrogen
  EXPECT_GT(std::abs(energy_of(turned) - energy_of(cluster)), 0.1);
}

TEST(Water, EnergiesAddUpAtDistance) {
  const std::vector<Cartesian> one = packed(1, 5), other = packed(1, 6);
  double last = 1e9;
  for (const double distance : {10.0, 100.0, 1000.0, 10000.0}) {
    std::vector<Cartesian> both = one;
    for (const Cartesian& p : other) both.push_back(p + Cartesian{distance, 0, 0});
    const double rest = std::abs(energy_of(both) - energy_of(one) - energy_of(other));
    EXPECT_LT(rest, last / 300);  // dipoles: with the third power of the distance
    last = rest;
  }
  EXPECT_LT(last, 1e-9);
}

// The recipe leaves open whether the stiffnesses carry a factor 1/2. With it a bond vibrates where water's do
// (3657 and 3756 per cm in the gas); without it at more than 5000 per cm.
TEST(Water, FactorOneHalfGivesTheStretchOfWater) {
  RandomStream random(7);
  const std::vector<Cartesian> molecule = pack_water(model, 1, random);
  const Cartesian along = (molecule[1] - molecule[0]) * (1 / model.bond_length);
  const auto stretched = [&](double by) {
    std::vector<Cartesian> moved = molecule;
    moved[1] += by * along;
    return energy_of(moved);
  };
  const double stiffness = (stretched(1e-4) + stretched(-1e-4)) / 1e-8;  // eV/A^2
  const double reduced = element_mass(1) * element_mass(8) / (element_mass(1) + element_mass(8));
  const double radians_per_fs = std::sqrt(stiffness * acceleration_unit / reduced);
  const double per_cm = radians_per_fs * 1e15 / (2 * std::numbers::pi * 2.99792458e10);
  std::printf("local O-H stretch: %.0f per cm\n", per_cm);
  EXPECT_NEAR(per_cm, 3700, 100);
  EXPECT_GT(per_cm * std::numbers::sqrt2, 5000);
}

TEST(Water, DimerBindsWithAHydrogenBond) {
  double best = 0, distance = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    RandomStream random(seed);
    MotionState state = start_motion(water_masses(2), pack_water(model, 2, random), 0, random, spc_field);
    EXPECT_LT(relax(state, 1e-4, 20000, spc_field), 1e-4);
    if (state.potential_energy < best) {
      best = state.potential_energy;
      distance = norm(state.positions[3] - state.positions[0]);
    }
  }
  std::printf("dimer: %.3f kcal/mol, O-O %.3f A\n", best / ev_per_kcal_per_mol, distance);
  EXPECT_NEAR(best / ev_per_kcal_per_mol, -7.2, 0.5);
  EXPECT_NEAR(distance, 2.73, 0.08);
}

TEST(Water, RefusesBrokenMolecules) {
  std::vector<Cartesian> forces(4);
  expect_error(ErrorCode::invalid_argument, {"4 atoms are not whole water molecules"},
               [&] { evaluate_water(model, std::vector<Cartesian>(4), forces); });
}

TEST(WaterGenerator, SamplesDoNotDependOnThreads) {
  expect_same_bits_on_any_threads("schnet", 8, {"most=8"});
}

TEST(WaterGenerator, LabelsBelongToTheStoredPositions) {
  ThreadPool pool(2);
  const auto generator = make_generator("schnet", {"most=10"});
  const auto made = generate_in_memory(*generator, 1, 0, 12, pool);
  const Tensor &pos = field(*generator, made, "pos"), &count = field(*generator, made, "molecules");
  const Tensor &kelvin = field(*generator, made, "temperature"), &energy = field(*generator, made, "energy");
  int minima = 0;
  for (std::int64_t i = 0; i < 12; ++i) {
    std::vector<Cartesian> positions, forces;
    for (std::int64_t a = 0; a < 3 * static_cast<std::int64_t>(count.at(i)); ++a)
      positions.push_back(
          {pos.at((i * 30 + a) * 3), pos.at((i * 30 + a) * 3 + 1), pos.at((i * 30 + a) * 3 + 2)});
    EXPECT_EQ(energy_of(positions) - energy.at(i), 0);
    EXPECT_LT(energy.at(i) / count.at(i), kelvin.at(i) > 0 ? 0.1 : -0.15);
    forces.resize(positions.size());
    evaluate_water(model, positions, forces);
    double largest = 0;
    for (const Cartesian& force : forces) largest = std::max(largest, norm(force));
    EXPECT_LT(largest, kelvin.at(i) == 0 ? 0.021 : 20);
    minima += kelvin.at(i) == 0;
  }
  EXPECT_GT(minima, 1);
  EXPECT_LT(minima, 11);
}

TEST(WaterGenerator, OpensInAse) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  make_generator("schnet", {"most=5"})->write({folder / "water.xyz", 3, 6, &pool});
  const auto frames = read_xyz(folder / "water.xyz");
  ASSERT_EQ(frames.size(), 6u);
  EXPECT_EQ(energy_of(frames[2].configuration.positions), *frames[2].labels.energy);
  const std::string python = python_with("ase");
  if (python.empty())
    GTEST_SKIP() << "no Python with the packages ase was found: tools/setup-oracles installs them";
  const std::string script = "path = '" + (folder / "water.xyz").string() + R"('
import ase.io
for atoms in ase.io.read(path, ':'):
    assert not atoms.pbc.any() and atoms.get_forces().shape == (len(atoms), 3)
    print(len(atoms), float(atoms.get_potential_energy()))
)";
  std::istringstream lines(python_output(python, folder, script).value_or("failed"));
  for (const XyzFrame& frame : frames) {
    std::size_t atoms = 0;
    double energy = 0;
    lines >> atoms >> energy;
    EXPECT_EQ(atoms, frame.configuration.positions.size());
    EXPECT_EQ(energy, *frame.labels.energy);
  }
}

}  // namespace
}  // namespace superstep::data
