// Ranks of scores, and what finds actives without a network.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "superstep/baseline/chemistry/activity.h"
#include "superstep/baseline/ranking.h"
#include "tests/baseline/run_baseline.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

TEST(Ranking, AreaIsTheShareOfPairsInOrder) {
  const double scores[] = {4, 3, 2, 1};
  const bool best[] = {true, true, false, false}, worst[] = {false, false, true, true},
             mixed[] = {true, false, true, false}, alike[] = {true, true, true, true};
  EXPECT_EQ(area_under_roc(scores, best), 1);
  EXPECT_EQ(area_under_roc(scores, worst), 0);
  EXPECT_EQ(area_under_roc(scores, mixed), 0.75);  // (4 3), (4 1), (2 1) of four pairs
  EXPECT_EQ(area_under_roc(scores, alike), 0.5);
  const double equal[] = {1, 1, 1, 1}, broken[] = {NAN, 3, 2, 1};
  EXPECT_EQ(area_under_roc(equal, mixed), 0.5);
  EXPECT_EQ(area_under_roc(broken, mixed), 0.25);  // (2 1) alone
}

TEST(Ranking, PrecisionIsTheMeanOverActives) {
  const double scores[] = {4, 3, 2, 1};
  const bool mixed[] = {true, false, true, false}, none[] = {false, false, false, false};
  EXPECT_NEAR(average_precision(scores, mixed), (1.0 + 2.0 / 3) / 2, 1e-12);
  EXPECT_EQ(average_precision(scores, none), 0);
  const double equal[] = {1, 1, 1, 1};
  EXPECT_EQ(average_precision(equal, mixed), 0.5);
}

// Chance is 0.5. Fingerprints tell more than element counts where there are enough molecules to fit trees to
// (of 3,000 no more; .80 beside .67 of 6,000, .85 beside .68 of 10,000).
TEST(ActivityBaseline, FingerprintsTellMoreThanElements) {
  const ScratchFolder folder;
  generate("gin", folder / "molecules.h5", 6000);
  const Report result = run_baseline("gin", folder / "molecules.h5", folder / "scores.csv");
  EXPECT_GT(metric(result, "floor_roc_auc"), 0.6);
  EXPECT_GT(metric(result, "roc_auc"), metric(result, "floor_roc_auc") + 0.05);
  EXPECT_LT(metric(result, "roc_auc"), 1);
  EXPECT_TRUE(std::filesystem::exists(folder / "scores.csv"));
}

std::string refusal(const std::string& text) {
  const ScratchFolder folder;
  std::ofstream(folder / "a.csv") << text;
  try {
    run_baseline("gin", folder / "a.csv");
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ActivityBaseline, NamesTheLineOfWhatItCannotRead) {
  const std::string label = refusal("smiles,active\nc1ccccc1,1\nCCO,2\n"),
                    smiles = refusal("smiles,active\nc1ccccc1,1\nCC(O,0\n");
  EXPECT_TRUE(contains(label, "a.csv, line 3")) << label;
  EXPECT_TRUE(contains(label, "'active' is 2, not 0 or 1")) << label;
  EXPECT_TRUE(contains(smiles, "a.csv, line 3")) << smiles;
  EXPECT_TRUE(contains(refusal("smiles,active\nc1ccccc1,1\n"), "too few series"));
}

}  // namespace
}  // namespace superstep::baseline
