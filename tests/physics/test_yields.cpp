#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "superstep/base/error.h"
#include "superstep/file/csv.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/chemistry/kinetics.h"
#include "superstep/physics/chemistry/molecule_descriptors.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/physics/chemistry/yield_reactions.h"
#include "tests/expect_error.h"
#include "tests/physics/workload_generators.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

// Three equal steps of 3k make a turnover of k.
CouplingRates constant_rates(double k, double kd) { return {3 * k, 3 * k, 3 * k, kd, 0}; }

TEST(Kinetics, ConstantRatesGiveTheClosedForm) {
  EXPECT_NEAR(steady_coupling_yield(0.05, 0.01, 60), 81.0564, 5e-5);
  EXPECT_NEAR(constant_rates(0.05, 0.01).turnover(), 0.05, 1e-15);
  for (const auto& [k, kd] : {std::pair(0.05, 0.01), std::pair(1.0, 0.0), std::pair(1e-4, 0.3)})
    EXPECT_NEAR(100 * integrate_coupling(constant_rates(k, kd), 60).product, steady_coupling_yield(k, kd, 60),
                1e-6);
  EXPECT_NEAR(100 * integrate_coupling(constant_rates(0.05, 0.01), 60).product, 81.0564, 5e-5);
}

TEST(Kinetics, MassIsConservedAndADyingCatalystMakesLess) {
  CouplingRates rates = constant_rates(0.05, 0.01);
  double last = 100;
  for (const double deactivation : {0.0, 0.01, 0.1, 1.0}) {
    rates.deactivation = deactivation;
    const CouplingState state = integrate_coupling(rates, 60);
    EXPECT_NEAR(state.substrate + state.product + state.waste, 1, 1e-12);
    EXPECT_NEAR(state.catalyst, std::exp(-deactivation * 60), 1e-8);
    EXPECT_LT(100 * state.product, last);
    last = 100 * state.product;
  }
  // Without a side reaction the substrate is known in closed form: exp(-k/kx (1 - exp(-kx t))).
  rates = constant_rates(0.05, 0);
  rates.deactivation = 0.02;
  EXPECT_NEAR(integrate_coupling(rates, 60).substrate, std::exp(-2.5 * (1 - std::exp(-1.2))), 1e-8);
  EXPECT_EQ(integrate_coupling(CouplingRates{}, 60).product, 0);
  expect_error(ErrorCode::invalid_argument, {"not negative"}, [] { integrate_coupling({}, -1); });
}

TEST(YieldReactions, AreTheFullFactorialOfReadableMolecules) {
  EXPECT_EQ(reaction_count(), 5760u);
  std::set<std::string> seen;
  int most_atoms = 0, most_bonds = 0, most_neighbors = 0;
  for (std::uint64_t i = 0; i < reaction_count(); ++i) seen.insert(joined_smiles(conditions_of(i)));
  EXPECT_EQ(seen.size(), 5760u);
  for (std::uint64_t i = 0; i < reaction_count(); i += 7) {
    const Molecule molecules = parse_smiles(joined_smiles(conditions_of(i)));
    most_atoms = std::max(most_atoms, molecules.atom_count());
    most_bonds = std::max(most_bonds, molecules.bond_count());
    for (int a = 0; a < molecules.atom_count(); ++a)
      most_neighbors = std::max(most_neighbors, molecules.degree(a));
  }
  EXPECT_LE(most_atoms, 200);
  EXPECT_LE(most_neighbors, 7);
  // What goes in comes out: the product is electrophile and nucleophile without leaving group and boron.
  EXPECT_EQ(molecular_formula(parse_smiles(coupling_product_smiles())), "C22H21N3O");
  EXPECT_EQ(molecular_formula(parse_smiles("Brc1ccc2ncccc2c1")), "C9H6BrN");
  EXPECT_EQ(molecular_formula(parse_smiles("Cc1ccc2n(ncc2c1B(O)O)C1CCCCO1")), "C13H17BN2O3");
}

TEST(YieldReactions, RatesFollowTheChemistry) {
  const auto yield = [](Conditions c) { return integrate_coupling(coupling_rates(c), 60).product; };
  // Iodide before bromide before chloride, with a ligand of little donation (PPh3) and K3PO4 in DMF.
  EXPECT_GT(yield({1, 3, 2, 9}), yield({1, 3, 2, 3}));
  EXPECT_GT(yield({1, 3, 2, 3}), yield({1, 3, 2, 0}));
  // A donating ligand helps the chloride; no ligand or no base makes little.
  EXPECT_GT(yield({0, 3, 2, 0}), 2 * yield({1, 3, 2, 0}));
  EXPECT_LT(yield({11, 3, 2, 3}), 0.1);
  EXPECT_LT(yield({8, 7, 2, 3}), 0.1);
  // Trifluoroborate likes methanol.
  EXPECT_GT(coupling_rates({8, 3, 3, 5}).transmetalation, 3 * coupling_rates({8, 3, 2, 5}).transmetalation);
}

TEST(YieldGenerator, SamplesDoNotDependOnThreads) { expect_same_bits_on_any_threads("yieldgnn", 20); }

TEST(YieldGenerator, ManyYieldsAreLowAndNoiseIsAsAsked) {
  ThreadPool pool(2);
  const auto generator = make_generator("yieldgnn");
  const auto made = generate_in_memory(*generator, 1, 0, 4543, pool);
  const Tensor &measured = field(*generator, made, "yield"), &exact = field(*generator, made, "yield_exact");
  int low = 0;
  std::set<double> reactions;
  for (std::int64_t i = 0; i < 4543; ++i) {
    low += measured.at(i) < 20;
    reactions.insert(field(*generator, made, "reaction").at(i));
    ASSERT_GE(measured.at(i), 0);
    ASSERT_LE(measured.at(i), 100);
  }
  EXPECT_EQ(reactions.size(), 4543u);
  const double ceiling = 1 - mean_square_difference(measured, exact) / variance(measured);
  std::printf("mean %.1f %%, sd %.1f %%, below 20 %%: %.2f, ceiling r2 %.3f\n", mean(measured),
              std::sqrt(variance(measured)), low / 4543.0, ceiling);
  EXPECT_GT(low / 4543.0, 0.35);
  EXPECT_LT(low / 4543.0, 0.65);
  EXPECT_GT(std::sqrt(variance(measured)), 22);
  EXPECT_GT(ceiling, 0.95);
  EXPECT_LT(ceiling, 0.985);
}

TEST(YieldGenerator, WritesItsThreeFormats) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator = make_generator("yieldgnn");
  for (const char* name : {"y.h5", "y.csv", "y.json"}) generator->write({folder / name, 2, 30, &pool});
  const Tensor yields = Hdf5File(folder / "y.h5").read("yield", ElementType::f32);
  std::ifstream stream(folder / "y.json");
  const nlohmann::json list = nlohmann::json::parse(stream);
  ASSERT_EQ(list.size(), 30u);
  CsvReader table(folder / "y.csv");
  for (std::int64_t i = 0; i < 30; ++i) {
    ASSERT_TRUE(table.next());
    const auto& entry = list[static_cast<std::size_t>(i)];
    EXPECT_EQ(static_cast<float>(table.number(table.column("yield"))), static_cast<float>(yields.at(i)));
    EXPECT_EQ(entry["yield"].get<float>(), static_cast<float>(yields.at(i)));
    EXPECT_EQ(entry["reactants"][0]["category"], "electrophile");
    const Molecule electrophile = parse_smiles(entry["reactants"][0]["smiles"].get<std::string>());
    EXPECT_EQ(entry["reactants"][0]["atoms"].size(), electrophile.atoms().size());
    EXPECT_TRUE(entry["reactants"][0].contains("HOMO_energy"));
    const std::string& reaction = table.text(table.column("reaction_smiles"));
    EXPECT_EQ(std::count(reaction.begin(), reaction.end(), '>'), 2);
    parse_smiles(table.text(table.column("reactant_smiles")));
  }
}

TEST(MoleculeDescriptors, ChargesAddUpAndPointTheRightWay) {
  const Molecule bicarbonate = parse_smiles("OC(=O)[O-]");
  const std::vector<double> charges = partial_charges(bicarbonate);
  EXPECT_NEAR(std::accumulate(charges.begin(), charges.end(), 0.0), -1, 1e-12);
  const std::vector<double> fluoro = partial_charges(parse_smiles("CF"));
  EXPECT_GT(fluoro[0], 0.1);
  EXPECT_LT(fluoro[1], -0.1);
  const auto benzene = global_descriptors(parse_smiles("c1ccccc1")),
             hexane = global_descriptors(parse_smiles("CCCCCC"));
  EXPECT_GT(benzene[0], hexane[0]);  // the HOMO lies higher, the LUMO lower
  EXPECT_LT(benzene[1], hexane[1]);
  EXPECT_EQ(global_descriptors(Molecule())[0], 0);
}

}  // namespace
}  // namespace superstep::data
