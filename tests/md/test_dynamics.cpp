// Motion against what mechanics and statistics say in closed form.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "superstep/base/statistics.h"
#include "superstep/md/motion/baths.h"
#include "superstep/physics/materials/atomic_units.h"
#include "tests/expect_error.h"
#include "tests/md/atoms.h"

namespace superstep::md {
namespace {

constexpr double kb = data::boltzmann_ev_per_kelvin;

// Atoms that do not feel each other.
class IdealGas final : public ForceField {
 public:
  nlohmann::json parameters() const override { return {}; }
  double cutoff() const override { return 0; }
  void evaluate(const Situation& situation, Evaluation& result) override {
    result.energy = 0, result.virial = {};
    result.forces.assign(situation.positions.size(), {});
  }
};

data::Configuration argon(const std::string& cells = "3x3x3") {
  return make_lattice("fcc:Ar:5.4:" + cells, 1).atoms;
}

Cartesian momentum(const State& state) {
  Cartesian sum;
  for (std::size_t i = 0; i < state.motion.masses.size(); ++i)
    sum += state.motion.masses[i] * state.motion.velocities[i];
  return sum;
}

// --- constant energy

// Small vibrations about the minimum: omega^2 = V''/mu, V'' = 72 epsilon / (2^(1/3) sigma^2).
TEST(Motion, DimerVibratesAtItsPeriod) {
  constexpr double sigma = 3.405, epsilon = 0.0103;
  const double least = std::pow(2, 1.0 / 6) * sigma, mass = data::element_mass(18);
  data::Configuration dimer{{18, 18}, {{0, 0, 0}, {least + 1e-4, 0, 0}}, {}};
  const auto field = field_of("lennard-jones", dimer, {"cutoff=20"});
  ThreadPool pool(1);
  Dynamics dynamics(*field, {.timestep = 2}, 1, pool);
  State state = started(dynamics, dimer, 0);
  std::vector<double> crossings;
  double before = 1;
  while (crossings.size() < 9) {
    dynamics.step(state, false);
    const double away = state.motion.positions[1].x - state.motion.positions[0].x - least;
    if (before > 0 && away <= 0)
      crossings.push_back(2.0 * (static_cast<double>(state.step) - away / (away - before)));
    before = away;
  }
  const double stiffness = 72 * epsilon / (std::cbrt(2.0) * sigma * sigma);
  const double period = 2 * std::numbers::pi * std::sqrt(mass / 2 / (stiffness * data::acceleration_unit));
  EXPECT_NEAR((crossings.back() - crossings.front()) / 8, period, 2e-4 * period);
}

// Root mean square of the conserved energy about its mean: of second order in the step.
double energy_error(double timestep) {
  data::Configuration atoms = argon();
  const auto field = field_of("lennard-jones", atoms);
  ThreadPool pool(2);
  Dynamics dynamics(*field, {.timestep = timestep}, 1, pool);
  State state = started(dynamics, atoms, 60);
  std::vector<double> energies;
  for (double time = 0; time < 1500; time += timestep) {
    dynamics.step(state, false);
    energies.push_back(dynamics.read(state).conserved);
  }
  double squares = 0;
  const double middle = mean(energies);
  for (const double each : energies) squares += (each - middle) * (each - middle);
  return std::sqrt(squares / static_cast<double>(energies.size()));
}

TEST(Motion, EnergyErrorFallsFourfoldWithHalfTheStep) {
  const double coarse = energy_error(10), fine = energy_error(5);
  EXPECT_NEAR(coarse / fine, 4, 0.6);
  EXPECT_LT(fine, 1e-3);
}

TEST(Motion, ReturnsWhenVelocitiesAreReversedAndKeepsItsMomentum) {
  for (const char* lattice : {"fcc:Ar:5.4:3", "fcc:Ni0.5Cu0.5:3.6:3"}) {
    data::Configuration atoms = make_lattice(lattice, 1).atoms;
    const auto field = field_of(lattice[4] == 'A' ? "lennard-jones" : "sutton-chen", atoms);
    ThreadPool pool(2);
    Dynamics dynamics(*field, {.timestep = 2}, 1, pool);
    State state = started(dynamics, atoms, 80);
    EXPECT_LT(norm(momentum(state)), 1e-12);
    for (int i = 0; i < 200; ++i) dynamics.step(state, false);
    EXPECT_LT(norm(momentum(state)), 1e-12);
    double moved = 0, left = 0;
    for (std::size_t i = 0; i < atoms.positions.size(); ++i)
      moved = std::max(moved, norm(state.motion.positions[i] - atoms.positions[i]));
    for (Cartesian& v : state.motion.velocities) v *= -1;
    for (int i = 0; i < 200; ++i) dynamics.step(state, false);
    for (std::size_t i = 0; i < atoms.positions.size(); ++i)
      left = std::max(left, norm(state.motion.positions[i] - atoms.positions[i]));
    EXPECT_GT(moved, 0.1);
    EXPECT_LT(left, 1e-9);
  }
}

TEST(Motion, OfWaterConservesEnergy) {
  data::Configuration atoms = make_water_box(32, 0.95, 1).atoms;
  const auto field = field_of("spc-fw", atoms, {"cutoff=7"});
  ThreadPool pool(2);
  Dynamics dynamics(*field, {.timestep = 0.25}, 1, pool);
  State state = started(dynamics, atoms, 200);
  dynamics.relax(state, 0.3, 3000);
  dynamics.begin(state);
  const double begun = dynamics.read(state).conserved;
  double most = 0;
  for (int i = 0; i < 1000; ++i) {
    dynamics.step(state, false);
    most = std::max(most, std::abs(dynamics.read(state).conserved - begun));
  }
  EXPECT_GT(dynamics.read(state).kinetic, 0.1);
  EXPECT_LT(most, 0.05);  // eV, of 96 atoms
}

// --- baths

TEST(Baths, SumsOfSquaresAreChiSquared) {
  for (const double count : {0.0, 1.0, 2.0, 3.0, 30.0, 500.0}) {
    RandomStream random(5, 1);
    constexpr int draws = 20000;
    double sum = 0, squares = 0;
    for (int i = 0; i < draws; ++i) {
      const double x = sum_of_squares(count, random);
      sum += x / draws, squares += (x - count) * (x - count) / draws;
    }
    EXPECT_NEAR(sum, count, 5 * std::sqrt(2 * count / draws) + 1e-12) << count;
    EXPECT_NEAR(squares, 2 * count, 0.08 * 2 * count + 1e-12) << count;
  }
}

// The kinetic energy of n degrees of freedom has the mean n kT/2 and the variance n (kT)^2 / 2, of the gas as
// of matter, and by either bath.
TEST(Baths, KineticEnergyIsCanonical) {
  constexpr double kelvin = 70;
  for (const Bath bath : {Bath::rescaling, Bath::langevin})
    for (const bool ideal : {true, false}) {
      data::Configuration atoms = argon("2x2x2");
      const auto lj = field_of("lennard-jones", atoms, {"cutoff=7"});
      IdealGas gas;
      ThreadPool pool(2);
      Dynamics dynamics(ideal ? static_cast<ForceField&>(gas) : *lj,
                        {.ensemble = Ensemble::nvt,
                         .bath = bath,
                         .timestep = 4,
                         .kelvin = kelvin,
                         .bath_time = 40,
                         .seed = 11},
                        1, pool);
      State state = started(dynamics, atoms, kelvin);
      std::vector<double> kinetic;
      for (int i = 0; i < 30000; ++i) {
        dynamics.step(state, false);
        if (i > 1000) kinetic.push_back(dynamics.read(state).kinetic);
      }
      const double n = dynamics.freedoms(state), expected = n * kb * kelvin / 2;
      EXPECT_EQ(n, bath == Bath::langevin ? 96 : 93);
      const double found = mean(kinetic);
      double variance = 0;
      for (const double each : kinetic)
        variance += (each - found) * (each - found) / static_cast<double>(kinetic.size());
      // 29,000 steps of 4 fs hold some 700 times that the energy is forgotten: errors .6 % and 5 %.
      EXPECT_NEAR(found / expected, 1, 0.02) << static_cast<int>(bath) << ideal;
      EXPECT_NEAR(variance / (n * kb * kb * kelvin * kelvin / 2), 1, 0.2) << static_cast<int>(bath) << ideal;
    }
}

TEST(Baths, ConservedEnergyStaysWhileTheBathWorks) {
  data::Configuration atoms = argon("3x3x3");
  const auto field = field_of("lennard-jones", atoms);
  ThreadPool pool(2);
  for (const Ensemble ensemble : {Ensemble::nvt, Ensemble::npt}) {
    Dynamics dynamics(*field,
                      {.ensemble = ensemble,
                       .timestep = 2,
                       .kelvin = 60,
                       .bath_time = 50,
                       .pressure_time = 500,
                       .compressibility = 2e-4 * data::bar_per_ev_per_cubic_angstrom},
                      1, pool);
    State state = started(dynamics, atoms, 20);
    const Reading begun = dynamics.read(state);
    double most = 0;
    for (int i = 0; i < 2000; ++i) {
      dynamics.step(state, true);
      most = std::max(most, std::abs(dynamics.read(state).conserved - begun.conserved));
    }
    EXPECT_GT(std::abs(state.bath_energy), 0.3);  // eV: what came and went
    EXPECT_LT(most, 0.02) << static_cast<int>(ensemble);
  }
}

// --- pressure

// N free atoms whose centre of mass is at rest: p(V) ~ V^(N-1) exp(-P V / kT), so that the volume has the
// mean N kT/P and the variance N (kT/P)^2.
TEST(Barostat, VolumeOfAnIdealGasHasItsDistribution) {
  constexpr double kelvin = 100, pressure = 1e-3;  // eV/A^3
  data::Configuration atoms = argon("2x2x2");
  const double n = 32, expected = n * kb * kelvin / pressure;
  const double start = std::cbrt(expected);
  for (Cartesian& p : atoms.positions) p *= start / atoms.cell->a.x;
  atoms.cell = Cell{{start, 0, 0}, {0, start, 0}, {0, 0, start}};
  IdealGas gas;
  ThreadPool pool(1);
  Dynamics dynamics(gas,
                    {.ensemble = Ensemble::npt,
                     .timestep = 2,
                     .kelvin = kelvin,
                     .bath_time = 20,
                     .pressure = pressure,
                     .pressure_time = 400,
                     .compressibility = 1 / pressure,
                     .seed = 3},
                    1, pool);
  State state = started(dynamics, atoms, kelvin);
  std::vector<double> volumes;
  for (int i = 0; i < 400000; ++i) {
    dynamics.step(state, false);
    volumes.push_back(dynamics.read(state).volume);
  }
  const double found = mean(volumes);
  double variance = 0;
  for (const double each : volumes)
    variance += (each - found) * (each - found) / static_cast<double>(volumes.size());
  // 800 ps hold some 1,000 times that the volume is forgotten: errors .6 % and 5 %.
  EXPECT_NEAR(found / expected, 1, 0.02);
  EXPECT_NEAR(variance / (n * std::pow(kb * kelvin / pressure, 2)), 1, 0.15);
}

// Virial and kinetic part together: the mean pressure of the atoms is that of the barostat.
TEST(Barostat, MeanPressureIsTheOneAskedFor) {
  data::Configuration atoms = argon("2x2x2");
  const auto field = field_of("lennard-jones", atoms, {"cutoff=7"});
  ThreadPool pool(2);
  const double bar = 1 / data::bar_per_ev_per_cubic_angstrom, asked = 1000 * bar;
  Dynamics dynamics(*field,
                    {.ensemble = Ensemble::npt,
                     .timestep = 4,
                     .kelvin = 80,
                     .bath_time = 50,
                     .pressure = asked,
                     .pressure_time = 300,
                     .compressibility = 1e-4 / bar,
                     .seed = 5},
                    1, pool);
  State state = started(dynamics, atoms, 80);
  std::vector<double> pressures;
  for (int i = 0; i < 25000; ++i) {
    dynamics.step(state, false);
    if (i > 2000) pressures.push_back(dynamics.read(state).pressure / bar);
  }
  EXPECT_NEAR(mean(pressures), 1000, 60);
}

// --- what goes wrong is said

TEST(Motion, NamesTwoAtomsAtOnePlace) {
  data::Configuration atoms = argon("2x2x2");
  atoms.positions[20] = atoms.positions[7] + Cartesian{0.01, 0, 0};
  const auto field = field_of("lennard-jones", atoms);
  ThreadPool pool(1);
  Dynamics dynamics(*field, {}, 1, pool);
  expect_error(ErrorCode::invalid_argument, {"atoms 8 and 21 are at one place"},
               [&] { started(dynamics, atoms, 0); });
}

TEST(Motion, StopsWhereItDiverges) {
  data::Configuration atoms = argon();
  const auto field = field_of("lennard-jones", atoms);
  ThreadPool pool(1);
  Dynamics dynamics(*field, {.timestep = 200}, 1, pool);
  State state = started(dynamics, atoms, 100);
  expect_error(ErrorCode::diverged, {"would move atom"}, [&] {
    for (int i = 0; i < 1000; ++i) dynamics.step(state, false);
  });
}

}  // namespace
}  // namespace superstep::md
