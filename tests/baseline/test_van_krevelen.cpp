#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/file.h"
#include "superstep/baseline/chemistry/van_krevelen.h"
#include "superstep/baseline/regression.h"
#include "superstep/file/csv.h"
#include "superstep/physics/chemistry/smiles.h"
#include "tests/baseline/run_baseline.h"

namespace superstep::baseline {
namespace {

TEST(Regression, ScoresByTheirDefinitions) {
  const std::vector<double> y = {1, 2, 3, 4}, p = {1, 2, 3, 6};
  const RegressionScore result = score(y, p);
  EXPECT_DOUBLE_EQ(result.mae, 0.5);
  EXPECT_DOUBLE_EQ(result.rmse, 1);
  EXPECT_DOUBLE_EQ(result.r2, 1 - 4.0 / 5);
  EXPECT_NEAR(result.pearson, 8 / std::sqrt(5.0 * 14), 1e-12);
}

TEST(Regression, RidgeFindsALineInBothForms) {
  Eigen::MatrixXd x(5, 3);
  x << 1, 2, 7, 2, 1, 7, 3, 5, 7, 4, 3, 7, 5, 9, 7;  // the last column does not vary
  const Eigen::VectorXd y = 3 * x.col(0) - 2 * x.col(1) + Eigen::VectorXd::Constant(5, 4);
  const LinearModel fit = fit_ridge(x, y, 0);
  EXPECT_NEAR(fit.weights[0], 3, 1e-6);
  EXPECT_NEAR(fit.weights[1], -2, 1e-6);
  EXPECT_EQ(fit.weights[2], 0);
  EXPECT_NEAR(fit.intercept, 4, 1e-6);
  // More columns than rows: the same weights as the other form gives with its own penalty.
  Eigen::MatrixXd wide(3, 4);
  wide << 1, 2, 3, 9, 4, 5, 7, 1, 2, 2, 8, 5;
  const Eigen::VectorXd z = wide.col(0) + wide.col(3);
  Eigen::MatrixXd doubled(6, 4);
  doubled << wide, wide;
  Eigen::VectorXd z2(6);
  z2 << z, z;
  EXPECT_LT((fit_ridge(wide, z, 0.3).weights - fit_ridge(doubled, z2, 0.3).weights).norm(), 1e-9);
}

TEST(VanKrevelen, FindsTheContributionsThatMadeTheData) {
  std::vector<MeasuredPolymer> polymers;
  for (const char* smiles : {"*CC(*)C", "*CC(*)c1ccccc1", "*CO*", "*CCO*", "*CC(*)Cl", "*CCC(*)Cl"}) {
    const data::Molecule molecule = data::parse_smiles(smiles);
    polymers.push_back({smiles, data::additive_glass_transition(molecule), data::count_groups(molecule),
                        data::molecular_weight(molecule)});
  }
  const auto fitted = fit_contributions(polymers);
  for (const auto& [group, value] : fitted)
    EXPECT_NEAR(value, data::find_group_contribution(group)->yg, 1e-3) << group;
  for (const MeasuredPolymer& polymer : polymers)
    EXPECT_NEAR(predict_kelvin(polymer, fitted), polymer.kelvin, 0.05);
}

TEST(VanKrevelen, StandsBetweenFloorAndCeiling) {
  const ScratchFolder folder;
  generate("polymer-gcn", folder / "tg.csv", 3000);
  const Report report = run_baseline("polymer-gcn", folder / "tg.csv", folder / "out.csv");
  EXPECT_GT(metric(report, "r2"), 0.90);
  EXPECT_LT(metric(report, "r2"), 0.96);  // the noise leaves .93
  EXPECT_LT(metric(report, "floor_r2"), metric(report, "r2") - 0.05);
  EXPECT_GT(metric(report, "tabulated_r2"), metric(report, "floor_r2"));
  EXPECT_EQ(data::CsvReader(folder / "out.csv").header().size(), 4u);
  std::printf("%s", report.text.c_str());
}

TEST(VanKrevelen, ReadsBothFormatsAndNamesTheBadLine) {
  const ScratchFolder folder;
  generate("polymer-gcn", folder / "tg.csv", 50);
  generate("polymer-gcn", folder / "tg.h5", 50);
  const auto table = read_polymers(folder / "tg.csv"), arrays = read_polymers(folder / "tg.h5");
  ASSERT_EQ(table.size(), arrays.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(table[i].smiles, arrays[i].smiles);
    EXPECT_EQ(table[i].groups, arrays[i].groups);
  }
  write_file_atomically(folder / "bad.csv", "smiles,Tg_K\n*CC(*)C,250\nCC(,260\n");
  try {
    read_polymers(folder / "bad.csv");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("bad.csv, line 3"), std::string::npos) << error.what();
    EXPECT_EQ(error.code(), ErrorCode::bad_file);  // the call was right
    EXPECT_NE(std::string(error.what()).find("branch is never closed"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace superstep::baseline
