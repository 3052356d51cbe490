// The graph isomorphism network: what must not change when a molecule is written or packed otherwise, shares
// of atoms, series that stay together, what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/op/core/evaluate.h"
#include "tests/contains.h"
#include "tests/workload/molecules.h"

namespace superstep::workload {
namespace {

const std::vector<std::string> small = {"atoms=24", "edges=56", "molecules=4", "width=12", "layers=2"};

struct Said {
  Tensor odds, shares, batch;
};

Said said_of(const std::vector<std::string>& smiles) {
  const std::vector<Tensor> inputs = pack_of(smiles, 24, 56);
  const std::vector<Tensor> outputs =
      op::evaluate(build_model(find_workload("gin"), 1, small), inputs).outputs;
  return {outputs[0], outputs[1], inputs[3]};
}

TEST(Gin, DoesNotSeeHowAMoleculeIsWritten) {
  const double a = said_of({"CC(=O)Nc1ccc(O)cc1"}).odds.at(0), b = said_of({"Oc1ccc(NC(C)=O)cc1"}).odds.at(0);
  EXPECT_NEAR(a, b, 1e-5 * (1 + std::abs(a)));
  EXPECT_GT(std::abs(a - said_of({"Oc1cccc(NC(C)=O)c1"}).odds.at(0)), 1e-4);  // meta is another one
}

TEST(Gin, DoesNotSeeWhatIsInThePackBeside) {
  const double alone = said_of({"c1ccccc1O"}).odds.at(0);
  EXPECT_NEAR(said_of({"CCO", "c1ccccc1O", "CC#N"}).odds.at(1), alone, 1e-5 * (1 + std::abs(alone)));
}

// At first the bias is zero: all that there is comes from atoms.
TEST(Gin, SharesOfAtomsAddUpToTheOdds) {
  const Said said = said_of({"CC(=O)Nc1ccc(O)cc1", "CCO"});
  const std::vector<double> sums = sums_of_shares(said.shares, said.batch, 2);
  for (std::int64_t molecule = 0; molecule < 2; ++molecule)
    EXPECT_NEAR(sums[static_cast<std::size_t>(molecule)], said.odds.at(molecule), 1e-5);
}

// A single atom has no neighbours: bonds are seen where there are some.
TEST(Gin, ReadsTheOrderOfBonds) {
  EXPECT_GT(
      std::abs(said_of({"[H]C([H])([H])C([H])([H])[H]"}).odds.at(0) - said_of({"[H]C#C[H]"}).odds.at(0)),
      1e-5);
}

TEST(Gin, HasItsParametersWithThePublishedWidth) {
  const std::vector<std::string> wide = {"width=300"};
  EXPECT_EQ(count_parameters(build_model(find_workload("gin"), 1, wide)), 1833906);
}

// --- data

const OpenedTable table{"gin", "molecules.csv"}, unlabelled{"gin", "molecules.csv", {}, false};

TEST(GinData, NamesTheLineOfWhatItCannotRead) {
  const std::string bad = table.refusal("smiles,active\nCCO,1\nCC(O,0\n");
  EXPECT_TRUE(contains(bad, "molecules.csv, line 3")) << bad;
  EXPECT_TRUE(contains(bad, "CC(O")) << bad;
  const std::string label = table.refusal("smiles,active\nCCO,1\nCCN,0.5\n");
  EXPECT_TRUE(contains(label, "molecules.csv, line 3: 'active' is 0.5, not 0 or 1")) << label;
  EXPECT_TRUE(contains(table.refusal("smiles\nCCO\n"), "active"));
  EXPECT_TRUE(contains(table.refusal("smiles,active\n"), "has no molecules"));
  const std::string large =
      OpenedTable{"gin", "molecules.csv", {"atoms=8"}}.refusal("smiles,active\nCCCCCCCCCO,1\n");
  EXPECT_TRUE(contains(large, "has 10 atoms and 9 bonds, there is room for 8 and 288")) << large;
}

TEST(GinData, NeedsNoLabelsToServe) {
  ThreadPool pool(1);
  const auto task = unlabelled.open("smiles\nCCO\nc1ccccc1\n", pool);
  EXPECT_EQ(task->training_count(), 0);
  EXPECT_FALSE(task->has_labels());
}

// Molecules with one frame are learnt from or held out together; each is held out in one fold.
TEST(GinData, SeriesStayTogether) {
  ThreadPool pool(2);
  std::int64_t held_out = 0;
  for (int fold = 1; fold <= 5; ++fold) {
    const auto about = OpenedTable{"gin", "molecules.csv", {"fold=" + std::to_string(fold)}}
                           .open("smiles,active\nCc1ccccc1,1\nCCc1ccccc1,0\nc1ccc(C(=O)O)cc1,0\n", pool)
                           ->describe();
    const auto training = about.at("training_molecules").get<std::int64_t>();
    EXPECT_TRUE(training == 0 || training == 3);
    held_out += 3 - training;
  }
  EXPECT_EQ(held_out, 3);
}

TEST(GinData, SaysWhatIsUnlikeTheTrainingData) {
  ThreadPool pool(1);
  // In one of two folds the series is learnt from.
  const auto open_fold = [&](const char* fold) {
    return OpenedTable{"gin", "molecules.csv", {fold}}.open("smiles,active\nCCO,1\nCCCO,0\n", pool);
  };
  auto known = open_fold("fold=1");
  if (known->training_count() == 0) known = open_fold("fold=2");
  const auto others = unlabelled.open("smiles\nCCCO\nCC[Se]C\n", pool);
  const auto notes = others->outside(*known);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(contains(notes[0], "molecules.csv, line 3")) << notes[0];
  EXPECT_TRUE(contains(notes[0], "Se")) << notes[0];
}

}  // namespace
}  // namespace superstep::workload
