#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/baseline/chemistry/fingerprint.h"
#include "superstep/baseline/regression.h"
#include "superstep/baseline/trees.h"
#include "superstep/physics/chemistry/smiles.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"

namespace superstep::baseline {
namespace {

struct Table {
  TreeFeatures x;
  std::vector<double> y;
};

// A step in one column times a slope in another: nothing that a linear model can say.
Table corner(std::uint64_t seed, int rows) {
  RandomStream random(seed, 0);
  Table table{TreeFeatures(rows, 3), {}};
  for (int i = 0; i < rows; ++i) {
    for (int c = 0; c < 3; ++c) table.x(i, c) = static_cast<float>(random.uniform(-1, 1));
    table.y.push_back(1000 + (table.x(i, 0) > 0.2f ? 5.0 : -5.0) * table.x(i, 1));
  }
  return table;
}

double r2_of(const TreeSettings& settings, const Table& known, const Table& others) {
  return score(others.y, fit_trees(known.x, known.y, others.x, settings)).r2;
}

TEST(Trees, LearnWhatNoLineCanSay) {
  const Table known = corner(1, 2000), others = corner(2, 500);
  EXPECT_GT(r2_of({.trees = 200}, known, others), 0.97);
  EXPECT_GT(r2_of(random_forest(1), known, others), 0.9);
  const Eigen::Map<const Eigen::VectorXd> y(known.y.data(), static_cast<Eigen::Index>(known.y.size()));
  const Eigen::VectorXd line = fit_ridge(known.x.cast<double>(), y, 0).predict_all(others.x.cast<double>());
  EXPECT_LT(score(others.y, std::vector<double>(line.begin(), line.end())).r2, 0.2);
  // A single stump cannot either, and labels that were shuffled teach nothing.
  EXPECT_LT(r2_of({.trees = 1, .depth = 1}, known, others), 0.2);
  Table shuffled = known;
  std::rotate(shuffled.y.begin(), shuffled.y.begin() + 7, shuffled.y.end());
  EXPECT_LT(r2_of({.trees = 50}, shuffled, others), 0.1);
}

TEST(Trees, GiveTheSameBitsAgain) {
  const Table known = corner(1, 500), others = corner(2, 100);
  const TreeSettings settings{.trees = 20, .threads = 2};
  const auto first = fit_trees(known.x, known.y, others.x, settings);
  EXPECT_EQ(first, fit_trees(known.x, known.y, others.x, settings));
  TreeSettings other_seed = settings;
  other_seed.seed = 2;
  EXPECT_NE(first, fit_trees(known.x, known.y, others.x, other_seed));
}

TEST(Trees, RefuseWhatDoesNotFitTogether) {
  Table known = corner(1, 20);
  const auto refused = [&](const TreeFeatures& others, const char* message) {
    expect_error(ErrorCode::invalid_argument, {message}, [&] { fit_trees(known.x, known.y, others, {}); });
  };
  refused(TreeFeatures(2, 5), "another number of columns");
  known.y[3] = std::nan("");
  refused(known.x, "not finite");
  known.y.pop_back();
  refused(known.x, "differ in number");
  EXPECT_TRUE(fit_trees(TreeFeatures::Zero(2, 1), std::vector<double>{1, 2}, TreeFeatures(0, 1), {}).empty());
}

std::vector<float> fingerprint(const char* smiles) {
  return morgan_fingerprint(data::parse_smiles(smiles), 2, 1024);
}

TEST(Fingerprint, CountsNeighbourhoodsWhateverTheOrderOfAtoms) {
  EXPECT_EQ(fingerprint("*CC(*)c1ccccc1"), fingerprint("c1ccccc1C(*)C*"));
  EXPECT_NE(fingerprint("*CC(*)c1ccccc1"), fingerprint("*CC(*)C1CCCCC1"));
  EXPECT_NE(fingerprint("*CC(*)Cl"), fingerprint("*CC(*)F"));
  float sum = 0;
  for (const float count : fingerprint("*CC(*)c1ccccc1")) sum += count;
  EXPECT_EQ(sum, 10 * 3);  // ten atoms, reaches 0, 1 and 2
  // In benzene all atoms are alike: one bin a reach.
  int occupied = 0;
  for (const float count : fingerprint("c1ccccc1")) occupied += count > 0;
  EXPECT_EQ(occupied, 3);
}

TEST(TreesOfWorkloads, StandWhereTheyShould) {
  const ScratchFolder folder;
  generate("polymer-gcn", folder / "tg.csv", 3000);
  const Report polymers = run_baseline("polymer-gcn", folder / "tg.csv");
  std::printf("%s", polymers.text.c_str());
  EXPECT_GT(metric(polymers, "trees_r2"), metric(polymers, "floor_r2"));
  EXPECT_GT(metric(polymers, "fingerprint_r2"), metric(polymers, "floor_r2"));
  generate("wallmodel", folder / "wall.h5", 4000, {"level=b"});
  const Report trees = run_baseline("wallmodel", folder / "wall.h5", folder / "tau.csv", {"method=trees"}),
               profile = run_baseline("wallmodel", folder / "wall.h5", {}, {"method=profile"});
  std::printf("%s%s", trees.text.c_str(), profile.text.c_str());
  EXPECT_GT(metric(trees, "pearson"), metric(profile, "pearson"));
  generate("yieldgnn", folder / "y.csv", 2000);
  const Report yields = run_baseline("yieldgnn", folder / "y.csv");
  EXPECT_GT(metric(yields, "forest_r2"), metric(yields, "floor_r2"));
  EXPECT_LT(metric(yields, "forest_r2"), 0.98);
}

}  // namespace
}  // namespace superstep::baseline
