// Frames of a user's own through a network that was trained on others: frames and tables out, and a word on
// what the network cannot know.
#include <gtest/gtest.h>

#include <fstream>

#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/csv.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/train/train.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

class ClusterServing : public ::testing::Test {
 protected:
  void SetUp() override {
    train({.workload = "schnet",
           .model_options = {"width=8", "blocks=1", "most=4"},
           .samples = 30,
           .batch = 2,
           .steps = 2},
          {.out = folder_ / "run"});
  }

  InferReport serve(const std::string& text, const char* output) {
    std::ofstream(folder_ / "my.xyz") << text;
    return infer({.workload = "schnet",
                  .weights = folder_ / "run",
                  .input = folder_ / "my.xyz",
                  .output = folder_ / output});
  }

  const ScratchFolder folder_;
};

const std::string monomer = "3\nplain\nO 0 0 0\nH 0.99 0 0\nH -0.4 0.93 0\n";
const std::string dimer =
    "6\nplain\nO 0 0 0\nH 0.99 0 0\nH -0.4 0.93 0\nO 2.9 0 0\nH 3.4 0.8 0\nH 3.4 -0.8 0\n";

TEST_F(ClusterServing, GivesFramesInTheirOrder) {
  serve(monomer + dimer + monomer, "out.xyz");
  const auto frames = data::read_xyz(folder_ / "out.xyz");
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[1].configuration.elements.size(), 6u);
  EXPECT_EQ(frames[1].labels.forces.size(), 6u);
  EXPECT_FLOAT_EQ(static_cast<float>(*frames[0].labels.energy), static_cast<float>(*frames[2].labels.energy));
  EXPECT_NE(*frames[0].labels.energy, *frames[1].labels.energy);
}

TEST_F(ClusterServing, GivesATableOfEnergies) {
  serve(monomer + dimer, "out.csv");
  data::CsvReader table(folder_ / "out.csv");
  EXPECT_EQ(table.header(), (std::vector<std::string>{"frame", "atoms", "molecules", "energy_eV"}));
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.number(1), 3);
  ASSERT_TRUE(table.next());
  EXPECT_EQ(table.number(1), 6);
  EXPECT_EQ(table.number(2), 2);
  EXPECT_FALSE(table.next());
}

TEST_F(ClusterServing, NamesWhatIsUnlikeTheTraining) {
  const InferReport report = serve(monomer + "2\nplain\nC 0 0 0\nO 1.1 0 0\n", "out.npz");
  ASSERT_EQ(report.outside.size(), 1u);
  EXPECT_TRUE(contains(report.outside[0], "my.xyz, frame 2 is unlike what was learnt from: C is no element"))
      << report.outside[0];
}

TEST_F(ClusterServing, ABadFrameIsNamed) {
  try {
    serve(monomer + "2\nplain\nO 0 0 0\nH 0 0 0\n", "out.xyz");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "my.xyz, frame 2")) << error.what();
    EXPECT_TRUE(contains(error.what(), "atoms 1 (O) and 2 (H) are at one place")) << error.what();
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.xyz"));
  }
}

}  // namespace
}  // namespace superstep::run
