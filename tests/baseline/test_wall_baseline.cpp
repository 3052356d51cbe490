#include <gtest/gtest.h>

#include "superstep/baseline/flow/wall.h"
#include "superstep/file/csv.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/generator.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

void generate(const std::filesystem::path& path, const std::vector<std::string>& settings,
              std::uint64_t samples) {
  ThreadPool pool(2);
  const auto& entry = data::find_generator("wallmodel");
  entry.make(Options(entry.options, settings))->write({path, 1, samples, &pool});
}

BaselineRun with(const std::filesystem::path& input, const std::string& method) {
  return {"wallmodel", input, {}, {}, {"method=" + method}};
}

TEST(WallBaseline, TheWallEquationIsExactOnItsOwnColumnsAndTheOthersAreNot) {
  const ScratchFolder folder;
  generate(folder / "b.h5", {"level=b", "noise=0"}, 300);
  const double profile = metric(with(folder / "b.h5", "profile")(), "pearson");
  const double equilibrium = metric(with(folder / "b.h5", "equilibrium")(), "pearson");
  EXPECT_GT(metric(with(folder / "b.h5", "gradients")(), "pearson"), 0.99999);
  EXPECT_LT(profile, 0.95);
  EXPECT_LT(equilibrium, 0.95);
  EXPECT_GT(profile, 0.5);
  // In the kinematic flow some columns separate; they are counted, not fatal.
  generate(folder / "a.h5", {"level=a"}, 300);
  const Report report = with(folder / "a.h5", "gradients")();
  EXPECT_GT(metric(report, "unsettled"), 0);
  EXPECT_LT(metric(report, "unsettled"), 150);
}

TEST(WallBaseline, ReadsTablesAsWellAsHdf5) {
  const ScratchFolder folder;
  generate(folder / "b.csv", {"level=a"}, 100);
  generate(folder / "b.h5", {"level=a"}, 100);
  const Report table =
      BaselineRun{"wallmodel", folder / "b.csv", folder / "tau.csv", folder / "p.html", {}}();
  const Report hdf5 = with(folder / "b.h5", "profile")();
  EXPECT_NEAR(metric(table, "mse"), metric(hdf5, "mse"), 1e-5 * metric(hdf5, "mse"));
  data::CsvReader found(folder / "tau.csv");
  int rows = 0;
  while (found.next()) ++rows;
  EXPECT_EQ(rows, 100);
  EXPECT_TRUE(std::filesystem::exists(folder / "p.html"));
}

TEST(WallBaseline, RefusesTooFewFeatures) {
  const ScratchFolder folder;
  data::Hdf5Writer file(folder / "few.h5");
  file.write("features", Tensor(ElementType::f32, {3, 8}));
  file.close();
  expect_error(ErrorCode::bad_file, {"few.h5", "has 8 features per point, 16 are needed"},
               with(folder / "few.h5", "profile"));
}

}  // namespace
}  // namespace superstep::baseline
