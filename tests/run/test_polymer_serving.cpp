// Polymers of a user's own through a network that was trained on others: a table out of a table, and a word
// on what the network cannot know.
#include <gtest/gtest.h>

#include <fstream>

#include "superstep/file/csv.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/train/train.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

class PolymerServing : public ::testing::Test {
 protected:
  void SetUp() override {
    train({.workload = "polymer-gcn",
           .model_options = {"width=8", "layers=1"},
           .samples = 400,
           .batch = 4,
           .steps = 2},
          {.out = folder_ / "run"});
  }

  InferReport serve(const std::string& text, const char* output = "out.csv") {
    std::ofstream(folder_ / "my.csv") << text;
    return infer({.workload = "polymer-gcn",
                  .weights = folder_ / "run",
                  .input = folder_ / "my.csv",
                  .output = folder_ / output});
  }

  const ScratchFolder folder_;
};

TEST_F(PolymerServing, GivesARowAPolymerInTheirOrder) {
  serve("smiles\n*CC(*)c1ccccc1\n*CCO*\n*CC(*)c1ccccc1\n*CCCCCC(*)C(=O)OCC\n");
  data::CsvReader table(folder_ / "out.csv");
  EXPECT_EQ(table.header(), (std::vector<std::string>{"smiles", "Tg_K"}));
  std::vector<std::string> smiles;
  std::vector<double> kelvin;
  while (table.next()) smiles.push_back(table.text(0)), kelvin.push_back(table.number(1));
  EXPECT_EQ(smiles,
            (std::vector<std::string>{"*CC(*)c1ccccc1", "*CCO*", "*CC(*)c1ccccc1", "*CCCCCC(*)C(=O)OCC"}));
  ASSERT_EQ(kelvin.size(), 4u);
  EXPECT_FLOAT_EQ(static_cast<float>(kelvin[0]), static_cast<float>(kelvin[2]));
  EXPECT_NE(kelvin[0], kelvin[1]);
}

TEST_F(PolymerServing, NamesWhatIsUnlikeTheTraining) {
  const InferReport report = serve("smiles\n*CC(*)c1ccccc1\n*CC(*)[Se]C\n");
  ASSERT_EQ(report.outside.size(), 1u);
  EXPECT_TRUE(contains(report.outside[0], "my.csv, line 3: '*CC(*)[Se]C' is unlike what was learnt from"));
  EXPECT_TRUE(contains(report.outside[0], "5 (Se)")) << report.outside[0];
}

TEST_F(PolymerServing, ABadMoleculeIsNamedByLineAndCharacter) {
  try {
    serve("smiles\n*CCO*\n*CC(=Q)*\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "my.csv, line 3")) << error.what();
    EXPECT_TRUE(contains(error.what(), "character 6")) << error.what();
  }
}

TEST_F(PolymerServing, WritesArraysOfPacksToo) {
  serve("smiles\n*CCO*\n", "out.npz");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out.npz"));
}

}  // namespace
}  // namespace superstep::run
