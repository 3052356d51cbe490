#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "superstep/file/csv.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/chemistry/molecule_features.h"
#include "superstep/physics/chemistry/polymer_generator.h"
#include "superstep/physics/chemistry/polymer_grammar.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/physics/index_permutation.h"
#include "tests/physics/workload_generators.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

TEST(IndexPermutation, VisitsEveryPlaceOnce) {
  for (const std::uint64_t count : {1, 2, 3, 17, 1000}) {
    const IndexPermutation shuffled(5, count, 1);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < count; ++i) seen.insert(shuffled(i));
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
  const IndexPermutation one(5, 1000, 1), other(6, 1000, 1);
  int same = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) same += one(i) == other(i);
  EXPECT_LT(same, 20);
}

TEST(PolymerGenerator, SamplesDoNotDependOnThreads) { expect_same_bits_on_any_threads("polymer-gcn", 40); }

TEST(PolymerGenerator, NoiseLeavesTheCeilingOfPointNineThree) {
  ThreadPool pool(2);
  const auto generator = make_generator("polymer-gcn");
  const std::uint64_t count = repeat_unit_count();
  const auto fields = generate_in_memory(*generator, 1, 0, count, pool);
  const Tensor &measured = field(*generator, fields, "Tg_K"),
               &exact = field(*generator, fields, "Tg_exact_K");
  const double ceiling = 1 - mean_square_difference(measured, exact) / variance(measured);
  EXPECT_NEAR(ceiling, 0.93, 0.01);
}

TEST(PolymerGenerator, ArraysHoldTheMolecule) {
  ThreadPool pool(1);
  const auto generator = make_generator("polymer-gcn");
  const auto fields = generate_in_memory(*generator, 1, 0, 20, pool);
  for (std::int64_t i = 0; i < 20; ++i) {
    std::string smiles;
    for (int c = 0; c < 128; ++c)
      if (const auto byte = static_cast<char>(field(*generator, fields, "smiles").at(i * 128 + c)); byte != 0)
        smiles += byte;
    const Molecule molecule = parse_smiles(smiles);
    EXPECT_EQ(field(*generator, fields, "atom_count").at(i), molecule.atom_count());
    EXPECT_EQ(field(*generator, fields, "edge_count").at(i), 2 * molecule.bond_count());
    EXPECT_NEAR(field(*generator, fields, "Tg_infinite_K").at(i), infinite_glass_transition(molecule), 1e-3);
  }
}

TEST(PolymerGenerator, CorrectsSideChainsAndMetaRings) {
  EXPECT_NEAR(infinite_glass_transition(parse_smiles("*CC(*)C(=O)OCCCC")), 219, 2);  // poly(butyl acrylate)
  const double para = infinite_glass_transition(parse_smiles("*OCCOC(=O)c1ccc(cc1)C(=O)*"));
  const double meta = infinite_glass_transition(parse_smiles("*OCCOC(=O)c1cccc(c1)C(=O)*"));
  EXPECT_NEAR(para - meta, 4000 / 192.17, 0.01);
}

TEST(PolymerGenerator, WritesTables) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator = make_generator("polymer-gcn");
  generator->write({folder / "tg.csv", 3, 1500, &pool});
  generator->write({folder / "tg.h5", 3, 1500, &pool});
  const Tensor kelvin = Hdf5File(folder / "tg.h5").read("Tg_K", ElementType::f32);
  CsvReader table(folder / "tg.csv");
  for (std::int64_t i = 0; i < 1500; ++i) {
    ASSERT_TRUE(table.next());
    ASSERT_EQ(static_cast<float>(table.number(table.column("Tg_K"))),
              kelvin.as<float>()[static_cast<std::size_t>(i)]);
    if (i < 5) parse_smiles(table.text(table.column("smiles")));
  }
  EXPECT_FALSE(table.next());
}

TEST(MoleculeFeatures, AreInTheirPlaces) {
  const Molecule molecule = parse_smiles("*C([NH3+])=Cc1ccccc1");
  float x[atom_feature_count];
  const auto ones = [&](int atom) {
    fill_atom_features(molecule, atom, x);
    std::vector<int> places;
    for (int i = 0; i < atom_feature_count; ++i)
      if (x[i] == 1) places.push_back(i);
    return places;
  };
  // 0 element, 13 degree, 19 hydrogens, 24 charge, 27 aromatic, 28 hybridisation, 34 ring, 35 mass.
  EXPECT_EQ(ones(0), (std::vector<int>{0, 14, 19, 25, 28}));
  EXPECT_EQ(ones(2), (std::vector<int>{3, 14, 22, 26, 31}));
  EXPECT_EQ(ones(4), (std::vector<int>{2, 16, 19, 25, 27, 30, 34}));
  EXPECT_FLOAT_EQ(x[35], 0.12011f);
  float edge[bond_feature_count];
  fill_bond_features(molecule, 3, edge);  // from the double bond to the ring
  EXPECT_EQ((std::vector<float>(edge, edge + 6)), (std::vector<float>{1, 0, 0, 0, 1, 0}));
}

}  // namespace
}  // namespace superstep::data
