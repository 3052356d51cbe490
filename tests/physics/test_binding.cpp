// Molecules by the grammar of drugs, their frames, and how well they fit the pocket.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "superstep/base/random.h"
#include "superstep/physics/chemistry/activity/binding.h"
#include "superstep/physics/chemistry/activity/drug_grammar.h"
#include "superstep/physics/chemistry/scaffold.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/physics/generator.h"

namespace superstep::data {
namespace {

std::string frame_of(const char* smiles) { return scaffold_smiles(parse_smiles(smiles)); }
std::string canonical(const char* smiles) { return canonical_smiles(parse_smiles(smiles)); }

TEST(Scaffold, IsTheRingsAndWhatLinksThem) {
  EXPECT_EQ(frame_of("CCc1ccccc1"), canonical("c1ccccc1"));
  EXPECT_EQ(frame_of("Clc1ccc(CNC2CCN(C)CC2)cc1O"), canonical("c1ccc(CNC2CCNCC2)cc1"));
  EXPECT_EQ(frame_of("O=C(Nc1ccccc1)c1ccncc1"), canonical("C(Nc1ccccc1)c1ccncc1"));
  // A nitrogen that loses its end has a hydrogen in its place.
  EXPECT_EQ(frame_of("Cn1cccc1"), canonical("[nH]1cccc1"));
  EXPECT_EQ(frame_of("CCCC(=O)O"), "");
  // Of two parts each keeps its own.
  EXPECT_EQ(frame_of("Cc1ccccc1.Cl"), canonical("c1ccccc1"));
}

TEST(Scaffold, DoesNotSeeHowAtomsAreNumbered) {
  EXPECT_EQ(frame_of("c1ccc(cc1)C(=O)N2CCOCC2"), frame_of("C1COCCN1C(=O)c1ccccc1"));
  EXPECT_NE(frame_of("c1ccc(cc1)C(=O)N2CCOCC2"), frame_of("c1ccc(cc1)CC(=O)N2CCOCC2"));
}

// Counted by hand.
TEST(Binding, FeaturesAreThoseOfTheFormula) {
  // 4-aminobenzoic acid: donors N and OH, acceptors both O; the amine is no base.
  const BindingFeatures acid = binding_features(parse_smiles("Nc1ccc(C(=O)O)cc1"));
  EXPECT_EQ(acid.donors, (std::vector<int>{0, 7}));
  EXPECT_EQ(acid.acceptors, (std::vector<int>{6, 7}));
  EXPECT_TRUE(acid.basic.empty());
  EXPECT_EQ(acid.acids, 1);
  EXPECT_EQ(acid.aromatic_rings.size(), 1u);
  EXPECT_EQ(acid.rotatable_bonds, 1);
  EXPECT_NEAR(acid.lipophilicity, 6 * 0.25 + 0.20 - 0.60 - 2 * 0.50, 1e-12);
  // N-methylpiperidine is a base; of acetamide nothing is.
  EXPECT_EQ(binding_features(parse_smiles("CN1CCCCC1")).basic, (std::vector<int>{1}));
  EXPECT_TRUE(binding_features(parse_smiles("CC(=O)N")).basic.empty());
  // Pyridine takes, pyrrole gives.
  EXPECT_EQ(binding_features(parse_smiles("c1ccncc1")).acceptors.size(), 1u);
  EXPECT_EQ(binding_features(parse_smiles("c1cc[nH]c1")).donors.size(), 1u);
  EXPECT_TRUE(binding_features(parse_smiles("c1cc[nH]c1")).acceptors.empty());
}

TEST(Binding, DistancesAreCountedInBonds) {
  const std::vector<int> distance = bond_distances(parse_smiles("CCC1CC1.O"));
  EXPECT_EQ(distance[0 * 6 + 2], 2);
  EXPECT_EQ(distance[0 * 6 + 4], 3);
  EXPECT_EQ(distance[3 * 6 + 4], 1);
  EXPECT_EQ(distance[0 * 6 + 5], -1);
}

// Without donors there is one way to bind, and the rest is a line.
TEST(Binding, OfAGreasyMoleculeFollowsFromItsAtoms) {
  EXPECT_NEAR(binding_exponent(parse_smiles("c1ccccc1")), 4 + 0.3 * 1.5, 1e-12);
  EXPECT_NEAR(binding_exponent(parse_smiles("Cc1ccccc1CC")), 4 + 0.3 * 2.1 - 0.12 * 1, 1e-12);
}

// A donor three bonds from an acceptor weighs 10^2 - 1; an amide's own are two bonds apart, 0.8 wide.
TEST(Binding, ReachesTheHingeAtThreeBonds) {
  const auto grease_free = [](const char* smiles) {
    const Molecule molecule = parse_smiles(smiles);
    const BindingFeatures features = binding_features(molecule);
    return binding_exponent(molecule) - 0.3 * features.lipophilicity + 0.12 * features.rotatable_bonds - 4;
  };
  EXPECT_NEAR(grease_free("NCC=O"), 2, 1e-9);
  EXPECT_NEAR(grease_free("NC=O"), std::log10(std::pow(10, 2 * std::exp(-0.5 / 0.64))), 1e-9);
}

TEST(Binding, DoesNotSeeHowAtomsAreNumbered) {
  RandomStream random(3, 0, 1);
  for (int i = 0; i < 20; ++i) {
    const Molecule molecule = parse_smiles(draw_drug(random));
    EXPECT_NEAR(binding_exponent(molecule), binding_exponent(parse_smiles(canonical_smiles(molecule))), 1e-9);
  }
}

TEST(DrugGrammar, WritesMoleculesOfTheirSize) {
  std::set<std::string> all, frames;
  double atoms = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    RandomStream random(1, i, 1);
    const Molecule molecule = parse_smiles(draw_drug(random));
    atoms += molecule.atom_count();
    EXPECT_LE(molecule.atom_count(), 60);
    // Carbon with four bonds at most: hydrogens that SMILES implies, or none.
    for (int atom = 0; atom < molecule.atom_count(); ++atom)
      EXPECT_TRUE(implied_hydrogens(molecule, atom).has_value() || molecule.atom(atom).charge != 0);
    all.insert(canonical_smiles(molecule)), frames.insert(scaffold_smiles(molecule));
  }
  EXPECT_GT(all.size(), 990u);
  EXPECT_GT(frames.size(), 600u);
  EXPECT_NEAR(atoms / 1000, 25, 2);
}

// A field of the first molecules.
Tensor activity(const std::vector<std::string>& settings, std::string_view name, std::uint64_t count) {
  const GeneratorEntry& entry = find_generator("gin");
  const auto generator = entry.make(Options(entry.options, settings));
  ThreadPool pool(2);
  const std::vector<Tensor> made = generate_in_memory(*generator, 1, 0, count, pool);
  for (std::size_t i = 0; i < made.size(); ++i)
    if (generator->fields()[i].name == name) return made[i];
  throw Error(ErrorCode::internal, "no such field", std::string(name));
}

TEST(ActivityGenerator, LabelsByTheAssay) {
  constexpr std::int64_t count = 4000;
  const Tensor active = activity({}, "active", count), measured = activity({}, "exponent", count),
               probability = activity({}, "probability", count),
               exact = activity({}, "exact_exponent", count);
  double apart = 0, found = 0, expected = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    EXPECT_EQ(active.at(i) == 1, measured.at(i) > 7);
    apart += std::pow(measured.at(i) - exact.at(i), 2) / count;
    found += active.at(i) / count, expected += probability.at(i) / count;
  }
  EXPECT_NEAR(std::sqrt(apart), 0.3, 0.015);
  // As many as the probabilities add up to, within four standard errors of a share of .07.
  EXPECT_NEAR(found, expected, 0.016);
  EXPECT_GT(found, 0.03);
  EXPECT_LT(found, 0.15);
}

TEST(ActivityGenerator, IsSureWithoutNoise) {
  const Tensor active = activity({"noise=0"}, "active", 200),
               probability = activity({"noise=0"}, "probability", 200);
  for (std::int64_t i = 0; i < 200; ++i) EXPECT_EQ(active.at(i), probability.at(i));
}

}  // namespace
}  // namespace superstep::data
