// The networks of molecules and atoms as benchmarks have them in PyTorch are the ones that files of ours
// hold.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

class PeersOfMolecules : public ::testing::Test {
 protected:
  // What the comparison ends with, and what it says.
  int compare(const std::string& before) {
    const std::string command = before + python_ + " " SUPERSTEP_SOURCE "/bench/peers/same_networks.py " +
                                SUPERSTEP_PROGRAM + " > '" + (folder_ / "said.txt").string() + "' 2>&1";
    const int status = std::system(command.c_str());
    said_ = content_of(folder_ / "said.txt");
    return status;
  }

  void SetUp() override {
    python_ = python_with("numpy, onnx, onnxruntime, torch");
    if (python_.empty())
      GTEST_SKIP() << "no Python with numpy, onnx, onnxruntime, torch: name one in SUPERSTEP_PYTHON";
  }

  ScratchFolder folder_;
  std::string python_, said_;
};

TEST_F(PeersOfMolecules, ComputeTheSameNetworks) {
  EXPECT_EQ(compare(""), 0) << said_;
  for (const char* network : {"yieldgnn", "gin", "polymer-gcn", "polymer-mpnn", "schnet", "deepmd"})
    EXPECT_TRUE(contains(said_, network)) << said_;
}

// Weights that are a hundredth larger there show.
TEST_F(PeersOfMolecules, AWrongWeightWouldBeNoticed) {
  EXPECT_NE(compare("SUPERSTEP_WRONG_WEIGHT=1 "), 0) << said_;
}

}  // namespace
}  // namespace superstep
