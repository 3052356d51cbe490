// Classical force fields against closed forms, against the pair-by-pair evaluation of the generators, and
// against differences of their own energy.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "superstep/physics/materials/atomic_units.h"
#include "superstep/physics/materials/crystal_potential.h"
#include "superstep/physics/materials/water.h"
#include "tests/expect_error.h"
#include "tests/md/atoms.h"

namespace superstep::md {
namespace {

data::Configuration crystal(const std::string& text, double sd = 0.15) {
  return rattled(make_lattice(text, 3).atoms, sd, 5);
}

// Largest difference to central differences of the energy, relative to the largest force.
double force_error(ForceField& field, const data::Configuration& atoms, double step = 1e-4) {
  const Evaluation here = evaluated(field, atoms);
  double largest = 0, error = 0;
  data::Configuration moved = atoms;
  for (std::size_t i = 0; i < std::min<std::size_t>(atoms.positions.size(), 12); ++i)
    for (double Cartesian::*axis : {&Cartesian::x, &Cartesian::y, &Cartesian::z}) {
      moved.positions[i].*axis = atoms.positions[i].*axis + step;
      const double above = evaluated(field, moved).energy;
      moved.positions[i].*axis = atoms.positions[i].*axis - step;
      const double below = evaluated(field, moved).energy;
      moved.positions[i].*axis = atoms.positions[i].*axis;
      error = std::max(error, std::abs(here.forces[i].*axis + (above - below) / (2 * step)));
      largest = std::max(largest, std::abs(here.forces[i].*axis));
    }
  return error / largest;
}

data::Configuration strained(const data::Configuration& atoms, std::size_t row, std::size_t column,
                             double by) {
  data::Configuration result = atoms;
  const auto apply = [&](Cartesian& v) {
    double from[3] = {v.x, v.y, v.z}, to[3] = {v.x, v.y, v.z};
    to[row] += by * from[column];
    v = {to[0], to[1], to[2]};
  };
  for (Cartesian& p : result.positions) apply(p);
  apply(result.cell->a), apply(result.cell->b), apply(result.cell->c);
  return result;
}

// Largest difference of the virial to minus the differences of the energy under strain, relative to its
// largest entry. Energies of a rotation-free force field do not feel the antisymmetric part.
double virial_error(ForceField& field, const data::Configuration& atoms, double step = 1e-5) {
  const Evaluation here = evaluated(field, atoms);
  double largest = 0, error = 0;
  for (std::size_t k = 0; k < 9; ++k) {
    const double above = evaluated(field, strained(atoms, k / 3, k % 3, step)).energy;
    const double below = evaluated(field, strained(atoms, k / 3, k % 3, -step)).energy;
    error = std::max(error, std::abs(here.virial[k] + (above - below) / (2 * step)));
    largest = std::max(largest, std::abs(here.virial[k]));
  }
  return error / largest;
}

struct Case {
  const char *potential, *lattice;
  std::vector<std::string> settings;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"lennard-jones", "fcc:Ar:5.3:3x3x3", {}},
      {"lennard-jones", "fcc:Ar:5.3:2x3x4", {"cutoff=12", "smooth-from=0"}},
      {"lennard-jones", "sc:Kr:4.2:3", {"element=any", "epsilon=0.0141", "sigma=3.65", "cutoff=7"}},
      {"morse", "fcc:Cu:3.61:2x2x3", {}},
      {"sutton-chen", "fcc:Cu:3.61:3x3x2", {}},
      {"sutton-chen", "fcc:Pd:3.89:1x1x1", {"cutoff=6"}},
      {"sutton-chen", "fcc:Ni0.5Cu0.5:3.57:3x2x2", {}},
      {"sutton-chen", "fcc:AlPdAgPtAu:3.99:2", {"cutoff=6.5"}},
  };
  return all;
}

TEST(ClassicalForces, AreDifferencesOfTheEnergy) {
  for (const Case& each : cases()) {
    data::Configuration atoms = crystal(each.lattice);
    const auto field = field_of(each.potential, atoms, each.settings);
    EXPECT_LT(force_error(*field, atoms), 1e-6) << each.potential << " " << each.lattice;
    EXPECT_LT(virial_error(*field, atoms), 1e-6) << each.potential << " " << each.lattice;
  }
}

TEST(ClassicalForces, DifferencesSeeAWrongForce) {
  data::Configuration atoms = crystal("fcc:Ar:5.3:3x3x3");
  const auto right = field_of("lennard-jones", atoms);
  class Wrong final : public ForceField {
   public:
    explicit Wrong(ForceField& inner) : inner_(inner) {}
    nlohmann::json parameters() const override { return inner_.parameters(); }
    double cutoff() const override { return inner_.cutoff(); }
    void evaluate(const Situation& situation, Evaluation& result) override {
      inner_.evaluate(situation, result);
      for (Cartesian& f : result.forces) f *= 1.0001;
      for (double& v : result.virial) v *= 1.0001;
    }
    ForceField& inner_;
  } wrong(*right);
  EXPECT_GT(force_error(wrong, atoms), 5e-5);
  EXPECT_GT(virial_error(wrong, atoms), 5e-5);
}

// The generators' potentials are other code, pair by pair, each pair once.
TEST(ClassicalForces, AreThoseOfTheGenerators) {
  const std::vector<std::tuple<const char*, const char*, const char*>> pairs{
      {"Ar", "lennard-jones", "fcc:Ar:5.3:3x3x3"}, {"Cu-Morse", "morse", "fcc:Cu:3.61:3"},
      {"Cu", "sutton-chen", "fcc:Cu:3.61:3x2x4"},  {"Al", "sutton-chen", "fcc:Al:4.05:2"},
      {"Pt", "sutton-chen", "fcc:Pt:3.92:1"},      {"NiCu", "sutton-chen", "fcc:Ni0.5Cu0.5:3.57:3"}};
  for (const auto& [known, name, lattice] : pairs) {
    data::Configuration atoms = crystal(lattice);
    const auto reference = data::make_crystal_potential(known);
    for (const double cutoff : {5.2, 8.0}) {
      const auto field = field_of(name, atoms, {fmt::format("cutoff={}", cutoff)});
      std::vector<int> types;
      for (const int element : atoms.elements)
        types.push_back(data::element_symbol(element) == reference->symbols()[0] ? 0 : 1);
      const Evaluation expected =
          reference->evaluate({0.875 * cutoff, cutoff}, atoms.positions, types,
                              data::neighbor_pairs(atoms.positions, atoms.cell, cutoff));
      const Evaluation found = evaluated(*field, atoms);
      EXPECT_NEAR(found.energy, expected.energy, 1e-11 * std::abs(expected.energy)) << known;
      for (std::size_t i = 0; i < found.forces.size(); ++i)
        EXPECT_LT(norm(found.forces[i] - expected.forces[i]), 1e-10) << known;
      for (std::size_t k = 0; k < 9; ++k) EXPECT_NEAR(found.virial[k], expected.virial[k], 1e-9) << known;
    }
  }
}

TEST(ClassicalForces, DimerOfArgonHasItsDepthAtItsDistance) {
  constexpr double sigma = 3.405, epsilon = 0.0103;
  const double least = std::pow(2, 1.0 / 6) * sigma;
  data::Configuration dimer{{18, 18}, {{0, 0, 0}, {least, 0, 0}}, {}};
  const auto field = field_of("lennard-jones", dimer, {"cutoff=30"});
  const Evaluation found = evaluated(*field, dimer);
  EXPECT_NEAR(found.energy, -epsilon, 1e-15);
  EXPECT_NEAR(found.forces[0].x, 0, 1e-15);
  dimer.positions[1].x = sigma;
  EXPECT_NEAR(evaluated(*field, dimer).energy, 0, 1e-15);
}

// Published cohesive energies, as sums over all neighbours up to ten lattice constants with a sharp end.
TEST(ClassicalForces, LatticeEnergiesOfSuttonAndChen) {
  const std::vector<std::pair<const char*, double>> table{
      {"fcc:Al:4.05:1", -3.340}, {"fcc:Ni:3.52:1", -4.440}, {"fcc:Cu:3.61:1", -3.500},
      {"fcc:Pd:3.89:1", -3.940}, {"fcc:Ag:4.09:1", -2.960}, {"fcc:Pt:3.92:1", -5.860},
      {"fcc:Au:4.08:1", -3.780}};
  for (const auto& [lattice, energy] : table) {
    data::Configuration cell = make_lattice(lattice, 1).atoms;
    const double cutoff = 10 * cell.cell->a.x * (1 + 1e-12);
    const auto field =
        field_of("sutton-chen", cell, {fmt::format("cutoff={}", cutoff), "smooth-from=cutoff"});
    EXPECT_NEAR(evaluated(*field, cell).energy / 4, energy, 0.0006) << lattice;
  }
}

TEST(ClassicalForces, HaveTheSameBitsOnAnyNumberOfThreads) {
  for (const Case& each : cases()) {
    data::Configuration atoms = crystal(each.lattice);
    const auto field = field_of(each.potential, atoms, each.settings);
    const Evaluation one = evaluated(*field, atoms, 1);
    for (const int threads : {2, 3, 8, 64}) {
      const Evaluation many = evaluated(*field, atoms, threads);
      EXPECT_EQ(many.energy, one.energy);
      EXPECT_EQ(many.forces, one.forces);
      EXPECT_EQ(many.virial, one.virial);
    }
  }
}

// --- water

data::Configuration water_box(std::int64_t molecules, double sd = 0.03) {
  return rattled(make_water_box(molecules, 0.95, 4).atoms, sd, 6);
}

// A box, and twenty-seven of it beside each other, are one crystal, however thin the box.
data::Configuration repeated(const data::Configuration& atoms, int times) {
  data::Configuration all;
  const Cell& cell = *atoms.cell;
  for (int i = 0; i < times * times * times; ++i) {
    const Cartesian shift = double(i / (times * times)) * cell.a + double(i / times % times) * cell.b +
                            double(i % times) * cell.c;
    for (std::size_t a = 0; a < atoms.positions.size(); ++a) {
      all.elements.push_back(atoms.elements[a]);
      all.positions.push_back(atoms.positions[a] + shift);
    }
  }
  all.cell = Cell{double(times) * cell.a, double(times) * cell.b, double(times) * cell.c};
  return all;
}

void expect_of_a_crystal(const char* potential, data::Configuration box,
                         const std::vector<std::string>& settings) {
  SCOPED_TRACE(potential);
  data::Configuration crystal = repeated(box, 3);
  const auto small = field_of(potential, box, settings), large = field_of(potential, crystal, settings);
  ASSERT_LT(box.cell->a.x, small->cutoff());
  const Evaluation one = evaluated(*small, box), all = evaluated(*large, crystal);
  EXPECT_NEAR(all.energy, 27 * one.energy, 1e-10 * std::abs(all.energy));
  double largest = 0;
  for (const Cartesian& force : one.forces) largest = std::max(largest, norm(force));
  EXPECT_GT(largest, 1e-3);
  for (std::size_t i = 0; i < all.forces.size(); ++i)
    EXPECT_LT(norm(all.forces[i] - one.forces[i % one.forces.size()]), 1e-10 * largest) << i;
  for (std::size_t k = 0; k < 9; ++k)
    EXPECT_NEAR(all.virial[k], 27 * one.virial[k], 1e-9 * std::abs(27 * one.virial[0])) << k;
}

TEST(ClassicalForces, OfABoxThinnerThanTheCutoffAreThoseOfTheCrystal) {
  const auto one_cell = [](const char* lattice) { return rattled(make_lattice(lattice, 3).atoms, 0.15, 5); };
  expect_of_a_crystal("lennard-jones", one_cell("fcc:Ar:5.3:1"), {});
  expect_of_a_crystal("morse", one_cell("fcc:Cu:3.61:1"), {});
  expect_of_a_crystal("sutton-chen", one_cell("fcc:Ni0.5Cu0.5:3.57:1"), {});
  expect_of_a_crystal("spc-fw", water_box(4), {"cutoff=7"});
}

TEST(WaterForces, AreDifferencesOfTheEnergy) {
  for (const std::int64_t molecules : {2, 30}) {
    data::Configuration atoms = water_box(molecules);
    const auto field = field_of("spc-fw", atoms, {"cutoff=7"});
    EXPECT_LT(force_error(*field, atoms), 1e-6) << molecules;
    EXPECT_LT(virial_error(*field, atoms), 1e-6) << molecules;
  }
}

// The same sum written out pair by pair, from the formula.
TEST(WaterForces, AreTheDampedShiftedSum) {
  data::Configuration atoms = water_box(40);
  constexpr double cutoff = 8, alpha = 0.25;
  const auto field = field_of("spc-fw", atoms, {"cutoff=8", "damping=0.25", "smooth-from=cutoff"});
  const double end = std::erfc(alpha * cutoff) / cutoff;
  const double f = -(end / cutoff + 2 * alpha * std::numbers::inv_sqrtpi *
                                        std::exp(-alpha * alpha * cutoff * cutoff) / cutoff);
  const double e = end - f * cutoff;
  const data::SpcFw model;
  const auto charge = [&](std::size_t i) {
    return i % 3 == 0 ? model.oxygen_charge : -model.oxygen_charge / 2;
  };
  double energy = 0;
  for (const auto& [i, j, shift] : data::neighbor_pairs(atoms.positions, atoms.cell, cutoff)) {
    const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j);
    const double r = norm(atoms.positions[b] + shift - atoms.positions[a]);
    const bool same = a / 3 == b / 3 && shift == Cartesian{};
    const double qq = data::coulomb_ev_angstrom * charge(a) * charge(b);
    energy += qq * (std::erfc(alpha * r) / r - e - f * r - (same ? 1 / r : 0));
    if (a % 3 == 0 && b % 3 == 0) {
      const double q6 = std::pow(model.sigma / r, 6);
      energy += 4 * model.epsilon * data::ev_per_kcal_per_mol * q6 * (q6 - 1);
    }
  }
  std::vector<Cartesian> unused(3);
  for (std::size_t i = 0; i < atoms.positions.size(); ++i) {
    energy -= data::coulomb_ev_angstrom * charge(i) * charge(i) * (e / 2 + alpha * std::numbers::inv_sqrtpi);
    if (i % 3 == 0)
      energy += data::add_water_molecule(model, std::span(atoms.positions).subspan(i, 3), unused);
  }
  EXPECT_NEAR(evaluated(*field, atoms).energy, energy, 1e-10 * std::abs(energy));
}

// Without damping e = 2/cutoff and f = -1/cutoff^2: of an undistorted molecule alone what is left are the
// terms -f r.
TEST(WaterForces, OfOneMoleculeAloneAreWhatTheShiftOfForcesLeaves) {
  data::Configuration atoms = make_water_box(1, 1e-5, 1).atoms;
  const data::SpcFw model;
  const double charge = model.oxygen_charge * model.oxygen_charge;
  const double apart = 2 * model.bond_length * std::sin(model.angle_degrees / 2 * std::numbers::pi / 180);
  for (const double cutoff : {9.0, 50.0}) {
    const auto field = field_of("spc-fw", atoms, {"damping=0.0000001", fmt::format("cutoff={}", cutoff)});
    const double expected =
        data::coulomb_ev_angstrom * charge * (-model.bond_length + apart / 4) / (cutoff * cutoff);
    EXPECT_NEAR(evaluated(*field, atoms).energy, expected, 1e-6);
  }
}

TEST(WaterForces, OfAClusterAreThoseOfTheGeneratorInAnyOrderOfAtoms) {
  data::Configuration atoms = make_water_cluster(5, 2).atoms, mixed = atoms;
  std::vector<Cartesian> forces(15);
  const double energy = data::evaluate_water({}, atoms.positions, forces);
  for (std::size_t i = 0; i < 15; ++i) {  // all hydrogens first
    const std::size_t from = i < 10 ? i / 2 * 3 + 1 + i % 2 : (i - 10) * 3;
    mixed.elements[i] = atoms.elements[from], mixed.positions[i] = atoms.positions[from];
  }
  const Evaluation found = evaluated(*field_of("spc-fw", mixed), mixed);
  EXPECT_NEAR(found.energy, energy, 1e-12);
  EXPECT_LT(norm(found.forces[10] - forces[0]), 1e-12);
}

TEST(WaterForces, MoleculesOnTheEdgeOfTheBoxAreMadeWhole) {
  data::Configuration atoms = water_box(27, 0), cut = atoms;
  const double edge = atoms.cell->a.x;
  for (Cartesian& p : cut.positions)
    for (double Cartesian::*axis : {&Cartesian::x, &Cartesian::y, &Cartesian::z})
      p.*axis -= edge * std::floor(p.*axis / edge);
  const double energy = evaluated(*field_of("spc-fw", atoms), atoms).energy;
  const auto field = field_of("spc-fw", cut);
  EXPECT_NEAR(evaluated(*field, cut).energy, energy, 1e-9);
  for (std::size_t i = 0; i < cut.positions.size(); i += 3)
    EXPECT_LT(norm(cut.positions[i + 1] - cut.positions[i]), 1.1);
}

TEST(WaterForces, NameWhatIsNoWater) {
  data::Configuration atoms = make_water_cluster(2, 1).atoms;
  atoms.elements[3] = 7;
  expect_error(ErrorCode::invalid_argument, {"atom 4 is N"}, [&] { field_of("spc-fw", atoms); });
  atoms = make_water_cluster(2, 1).atoms;
  atoms.positions[4] += {3, 0, 0};
  expect_error(ErrorCode::invalid_argument, {"hydrogen 5 is bound to no oxygen"},
               [&] { field_of("spc-fw", atoms); });
  atoms = make_water_cluster(1, 1).atoms;
  atoms.elements.pop_back(), atoms.positions.pop_back();
  expect_error(ErrorCode::invalid_argument, {"oxygen 1 has 1 hydrogens"}, [&] { field_of("spc-fw", atoms); });
}

TEST(ClassicalForces, NameElementsWithoutParameters) {
  data::Configuration iron = make_lattice("bcc:Fe:2.87:2", 1).atoms;
  expect_error(ErrorCode::invalid_argument, {"atom 1 is Fe", "Al, Ni, Cu"},
               [&] { field_of("sutton-chen", iron); });
  expect_error(ErrorCode::invalid_argument, {"atom 1 is Fe", "those of Ar"},
               [&] { field_of("lennard-jones", iron); });
}

}  // namespace
}  // namespace superstep::md
