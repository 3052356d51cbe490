// A trained run as a force field of configurations that are not those it was trained on.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "superstep/base/file.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/physics/materials/sutton_chen.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/serve/trained_forces.h"
#include "superstep/run/train/run_directory.h"
#include "superstep/run/train/train.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

TrainSettings small_run() {
  return {.workload = "deepmd",
          .model_options = {"embedding=4,8", "axis=4", "fitting=8,8", "precision=mixed", "halving=0",
                            "virial=0,0"},
          .samples = 40,
          .batch = 4};
}

class DeepmdRun : public ::testing::Test {
 protected:
  void SetUp() override {
    TrainSettings settings = small_run();
    settings.epochs = 2;
    train(settings, {.out = folder_ / "run"});
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
  expect_error(ErrorCode::unsupported, {"is a run of 'mlp', whose models give no forces"},
               [&] { TrainedForces(folder_ / "other", {29}); });
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream text(line);
  return {std::istream_iterator<std::string>(text), {}};
}

// The lines of a folder's lcurve.out as numbers, behind the names of DeePMD-kit's columns.
std::vector<std::vector<double>> curve_in(const std::filesystem::path& folder) {
  std::istringstream curve(read_text_file(folder / "lcurve.out"));
  std::string line;
  EXPECT_TRUE(std::getline(curve, line));
  EXPECT_EQ(words_of(line),
            (std::vector<std::string>{"#", "step", "rmse_val", "rmse_trn", "rmse_e_val", "rmse_e_trn",
                                      "rmse_f_val", "rmse_f_trn", "rmse_v_val", "rmse_v_trn", "lr"}));
  std::vector<std::vector<double>> rows;
  while (std::getline(curve, line)) {
    std::vector<double>& row = rows.emplace_back();
    for (const std::string& word : words_of(line)) row.push_back(std::stod(word));
    EXPECT_EQ(row.size(), 10U) << line;
    for (const double number : row) EXPECT_GT(number, 0) << line;
  }
  return rows;
}

// A line an epoch, of numbers that DeePMD-kit's readers take.
TEST_F(DeepmdRun, KeepsLcurveOut) {
  const auto rows = curve_in(folder_ / "run");
  ASSERT_EQ(rows.size(), 2U);
  // What metrics.jsonl says of all validation frames, in eV, eV/A and eV.
  const nlohmann::json last = RunDirectory::open(folder_ / "run").read_log().back();
  const double names[] = {last.at("energy_rmse"), last.at("force_rmse"), last.at("virial_rmse")};
  for (const std::size_t k : {0U, 1U, 2U})
    EXPECT_NEAR(rows[1][3 + 2 * k], 1e-3 * names[k], 1e-7 * names[k] + 1e-4 * rows[1][3 + 2 * k]);
  // The root of the whole loss: 32 atoms, energies and forces weigh 1, virials nothing.
  const double energy = rows[1][3], force = rows[1][5];
  EXPECT_NEAR(rows[1][1], std::sqrt(32 * energy * energy + force * force), 1e-3 * rows[1][1]);
}

// A run that ends within its first epoch has a line, too.
TEST_F(DeepmdRun, KeepsLcurveOutOfLessThanAnEpoch) {
  TrainSettings settings = small_run();
  settings.steps = 3;
  train(settings, {.out = folder_ / "short"});
  const auto rows = curve_in(folder_ / "short");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0][0], 3);
}

}  // namespace
}  // namespace superstep::run
