#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/baseline/chemistry/hill_fit.h"
#include "superstep/baseline/chemistry/uno_ridge.h"
#include "superstep/file/hdf5/hdf5.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"

namespace superstep::baseline {
namespace {

TEST(HillFit, FindsTheCurve) {
  std::vector<double> x, y;
  for (const data::HillCurve curve :
       {data::HillCurve{1, -7, 0.05}, data::HillCurve{2.5, -5.2, 0.4}, data::HillCurve{0.7, -8, 0.1}}) {
    x.clear(), y.clear();
    for (int i = 0; i < 9; ++i) x.push_back(-10 + 0.75 * i), y.push_back(data::viability(curve, x.back()));
    const data::HillCurve fitted = fit_hill(x, y);
    EXPECT_NEAR(fitted.slope, curve.slope, 1e-3);
    EXPECT_NEAR(fitted.log10_ec50, curve.log10_ec50, 1e-3);
    EXPECT_NEAR(fitted.floor, curve.floor, 1e-3);
    EXPECT_NEAR(data::area_under_curve(fitted), data::area_under_curve(curve), 1e-4);
  }
  expect_error(ErrorCode::invalid_argument, {"at least four points"},
               [&] { fit_hill(std::span(x).first(3), std::span(y).first(3)); });
}

TEST(HillFit, ReachesItsBoundsAndSaysWhenThereIsNoFit) {
  std::vector<double> x, y;
  for (int i = 0; i < 9; ++i) x.push_back(-10 + 0.75 * i), y.push_back(data::viability({1, -7, 0}, x.back()));
  EXPECT_NEAR(fit_hill(x, y).floor, 0, 1e-3);  // on the bound
  for (double& value : y) value = 1;           // no response: the area is all there is
  EXPECT_NEAR(data::area_under_curve(fit_hill(x, y)), 1, 1e-3);
  y[3] = std::nan("");
  expect_error(ErrorCode::diverged, {"the fit of a Hill curve failed"}, [&] { fit_hill(x, y); });
}

// The distribution's Ceres library would bring SuiteSparse, parts of which are under the GPL.
TEST(LeastSquares, BringsNoSparseLibraryIntoTheProgram) {
  EXPECT_NE(dlsym(RTLD_DEFAULT, "jpeg_std_error"), nullptr);  // a library that is loaded is found
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "cholmod_start"), nullptr);
}

TEST(LeadingComponents, AreThoseOfAKnownTable) {
  RandomStream random(2);
  Eigen::MatrixXd factors(200, 2), weights(2, 30), table;
  for (double& value : factors.reshaped()) value = random.normal();
  for (double& value : weights.reshaped()) value = random.normal();
  table = factors * weights;
  table.col(7).setConstant(3);
  const Eigen::MatrixXd made = leading_components(table, 2);
  EXPECT_LT((made.transpose() * made / 200 - Eigen::MatrixXd::Identity(2, 2)).norm(), 1e-9);
  // The components span the factors: what is left of them outside is nothing.
  const Eigen::MatrixXd centred = factors.rowwise() - factors.colwise().mean();
  EXPECT_LT((centred - made * (made.transpose() * centred) / 200).norm(), 1e-6 * centred.norm());
}

TEST(UnoRidge, StandsBetweenFloorAndCeiling) {
  const ScratchFolder folder;
  generate("uno", folder / "uno.h5", 6000, {"cells=150", "drugs=120", "doses=9"});
  const Report report = run_baseline("uno", folder / "uno.h5", folder / "out.csv", {"components=16"});
  std::printf("%s", report.text.c_str());
  EXPECT_GT(metric(report, "floor_r2"), 0.2);
  EXPECT_GT(metric(report, "r2"), metric(report, "floor_r2"));
  EXPECT_LT(metric(report, "r2"), metric(report, "ceiling_r2"));
  EXPECT_NEAR(metric(report, "ceiling_r2"), 0.8, 0.04);
  EXPECT_LT(metric(report, "hill_fit_rmse"), 0.07);  // the offset of the study stays
  EXPECT_TRUE(std::filesystem::exists(folder / "out.csv"));
}

TEST(UnoRidge, NamesWhatIsWrong) {
  const ScratchFolder folder;
  data::Hdf5Writer file(folder / "bad.h5");
  file.write("cell_rnaseq", Tensor(ElementType::f32, {3, 4}));
  file.write("drug_descriptors", Tensor(ElementType::f32, {2, 4}));
  file.write("AUC", Tensor(ElementType::f32, {2}));
  file.write("cell_index", Tensor::from<std::int32_t>({2}, {0, 3}));
  file.close();
  expect_error(ErrorCode::bad_file, {"bad.h5", "'cell_index' points outside its table at row 1"},
               [&] { read_uno(folder / "bad.h5"); });
}

}  // namespace
}  // namespace superstep::baseline
