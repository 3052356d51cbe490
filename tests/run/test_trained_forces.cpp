// A trained run as a force field of configurations that are not those it was trained on.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "superstep/base/file.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/physics/materials/sutton_chen.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/serve/trained_forces.h"
#include "superstep/run/train/train.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

class DeepmdRun : public ::testing::Test {
 protected:
  void SetUp() override {
    train({.workload = "deepmd",
           .model_options = {"embedding=4,8", "axis=4", "fitting=8,8", "precision=mixed"},
           .samples = 40,
           .batch = 4,
           .epochs = 2},
          {.out = folder_ / "run"});
  }
  static data::Configuration crystal(int cells) {
    data::Configuration all = data::face_centred_cubic(29, 3.6, cells);
    for (std::size_t i = 0; i < all.positions.size(); i += 4) all.positions[i].x += 0.2;
    return all;
  }
  const ScratchFolder folder_;
};

TEST_F(DeepmdRun, GivesWhatInferGives) {
  const data::Configuration atoms = crystal(2);
  std::ofstream(folder_ / "my.xyz") << data::format_xyz({atoms, {}, {}});
  infer({.workload = "deepmd",
         .weights = folder_ / "run",
         .input = folder_ / "my.xyz",
         .output = folder_ / "out.xyz"});
  const data::Labels theirs = data::read_xyz(folder_ / "out.xyz").at(0).labels;
  TrainedForces field(folder_ / "run", atoms.elements);
  const data::Labels ours = field.evaluate(atoms);
  EXPECT_NEAR(*ours.energy, *theirs.energy, 1e-5 * std::abs(*theirs.energy));
  ASSERT_EQ(ours.forces.size(), 32u);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_LT(data::norm(ours.forces[i] - theirs.forces[i]), 1e-4);
  EXPECT_GT(data::norm(ours.forces[0]), 1e-3);
  ASSERT_TRUE(ours.virial.has_value());
}

// A box of another size than those of the training, and the same box again.
TEST_F(DeepmdRun, KnowsAnyNumberOfAtoms) {
  const data::Configuration small = crystal(1), large = crystal(3);
  TrainedForces of_four(folder_ / "run", small.elements), of_many(folder_ / "run", large.elements);
  const double one = *of_four.evaluate(small).energy, many = *of_many.evaluate(large).energy;
  EXPECT_NEAR(many, 27 * one, 1e-5 * std::abs(many));
  EXPECT_EQ(*of_four.evaluate(small).energy, one);
  EXPECT_EQ(of_four.cutoff(), 6);
  EXPECT_EQ(of_four.elements(), std::vector<int>{29});
}

TEST_F(DeepmdRun, RefusesWhatItDoesNotKnow) {
  expect_error(ErrorCode::invalid_argument, {"atom 2 (O)", "does not know"}, [&] {
    TrainedForces(folder_ / "run", {29, 8});
  });
  expect_error(ErrorCode::bad_file, {"atoms 1 (Cu) and 2 (Cu) are at one place"}, [&] {
    TrainedForces field(folder_ / "run", {29, 29});
    field.evaluate({{29, 29}, {{1, 1, 1}, {1, 1, 1}}, {}});
  });
  train({.workload = "mlp", .samples = 200, .batch = 50, .steps = 1}, {.out = folder_ / "other"});
  expect_error(ErrorCode::unsupported, {"is a run of 'mlp', which gives no forces"},
               [&] { TrainedForces(folder_ / "other", {29}); });
}

// A line an epoch, of numbers that DeePMD-kit's readers take.
TEST_F(DeepmdRun, KeepsLcurveOut) {
  std::istringstream curve(read_text_file(folder_ / "run" / "lcurve.out"));
  std::string header, line;
  ASSERT_TRUE(std::getline(curve, header));
  EXPECT_EQ(header, "#  step      rmse_trn    rmse_e_val    rmse_f_val         lr");
  int lines = 0;
  while (std::getline(curve, line)) {
    std::istringstream numbers(line);
    double step, training, energy, force, rate;
    ASSERT_TRUE(numbers >> step >> training >> energy >> force >> rate) << line;
    EXPECT_GT(training, 0);
    EXPECT_GT(force, 0);
    ++lines;
  }
  EXPECT_EQ(lines, 2);
}

}  // namespace
}  // namespace superstep::run
