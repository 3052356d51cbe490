#include <gtest/gtest.h>

#include "superstep/base/file.h"
#include "superstep/baseline/chemistry/kinetics_fit.h"
#include "superstep/physics/chemistry/kinetics.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"

namespace superstep::baseline {
namespace {

TEST(KineticModel, AgreesWithTheIntegrator) {
  for (const auto& [k, kd, kx] :
       {std::array{0.05, 0.01, 0.02}, std::array{0.4, 0.001, 0.3}, std::array{0.002, 0.05, 1e-4}}) {
    const double each = std::log(3 * k);
    KineticModel model{{each}, {0}, {each}, {0}, {0}, {each}, {std::log(kd)}, {0}, {0}, {std::log(kx)}};
    const double integrated = 100 * data::integrate_coupling({3 * k, 3 * k, 3 * k, kd, kx}, 60).product;
    EXPECT_NEAR(model.predict({0, 0, 0, 0, 0}), integrated, 1e-3);
  }
}

TEST(KineticsFit, FindsTheMechanismBehindTheNoise) {
  const ScratchFolder folder;
  generate("yieldgnn", folder / "y.csv", 2000);
  const Report report = run_baseline("yieldgnn", folder / "y.csv", folder / "out.csv");
  std::printf("%s", report.text.c_str());
  EXPECT_GT(metric(report, "r2"), 0.90);
  EXPECT_LT(metric(report, "r2"), 0.98);  // the noise leaves .96
  EXPECT_GT(metric(report, "regression_r2"), 0.6);
  EXPECT_LT(metric(report, "floor_r2"), metric(report, "regression_r2"));
  EXPECT_TRUE(std::filesystem::exists(folder / "out.csv"));
}

TEST(KineticsFit, ReadsBothFormatsAlikeAndNamesTheBadLine) {
  const ScratchFolder folder;
  generate("yieldgnn", folder / "y.csv", 40);
  generate("yieldgnn", folder / "y.h5", 40);
  const YieldTable csv = read_yields(folder / "y.csv"), hdf5 = read_yields(folder / "y.h5");
  EXPECT_EQ(csv.names, hdf5.names);
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(csv.reactions[i].component, hdf5.reactions[i].component);
    EXPECT_NEAR(csv.reactions[i].yield, hdf5.reactions[i].yield, 1e-5);
  }
  write_file_atomically(
      folder / "bad.csv",
      std::string_view("ligand,base,solvent,electrophile,nucleophile,yield\na,b,c,d,e,101\n"));
  expect_error(ErrorCode::bad_file, {"bad.csv, line 2", "not between 0 and 100"},
               [&] { read_yields(folder / "bad.csv"); });
}

}  // namespace
}  // namespace superstep::baseline
