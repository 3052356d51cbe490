#include <gtest/gtest.h>

#include "superstep/baseline/materials/ald.h"
#include "superstep/file/csv.h"
#include "superstep/physics/generator.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

TEST(AldBaseline, FindsTheReferenceCurveFromItsGrowth) {
  const data::AldProcess process = data::find_ald_chemistry("reference");
  const std::vector<double> target = data::growth_per_cycle(process, 10);
  const AldFit fit = fit_ald(process, AldTarget::growth, target, 10, 0.01, 8);
  EXPECT_LT(fit.deviation, 1e-3);
  EXPECT_GT(fit.simulations, 20);
}

TEST(AldBaseline, TheTraceWithinACycleFixesAllFourUnknowns) {
  const data::AldProcess process = data::find_ald_chemistry("reference");
  std::vector<double> trace;
  data::growth_per_cycle(process, 5, 0.01, &trace);
  const AldFit fit = fit_ald(process, AldTarget::trace, trace, 5, 0.01, 8);
  EXPECT_NEAR(fit.purge_a_s, 0.2, 1e-4);
  EXPECT_NEAR(fit.purge_b_s, 0.3, 1e-4);
  EXPECT_NEAR(fit.mass_a, 0.8, 1e-4);
  EXPECT_NEAR(fit.mass_b, 0.5, 1e-4);
}

TEST(AldBaseline, FitsAGeneratedFile) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto& entry = data::find_generator("tad-ald");
  const std::vector<std::string> settings{"noise=0.001", "cycles=6"};
  entry.make(Options(entry.options, settings))->write({folder / "ald.h5", 1, 8, &pool});
  const Report report =
      BaselineRun{"tad-ald", folder / "ald.h5", folder / "fits.csv", {}, {"target=trace", "cycles=6"}}();
  EXPECT_LT(metric(report, "settings_error"), 0.05);
  data::CsvReader table(folder / "fits.csv");
  int rows = 0;
  while (table.next()) ++rows;
  EXPECT_EQ(rows, 8);
  const Report growth = BaselineRun{"tad-ald", folder / "ald.h5", {}, {}, {}}();
  EXPECT_EQ(metric(growth, "within_tolerance"), 1);
  expect_error(ErrorCode::invalid_argument, {"curve"},
               BaselineRun{"tad-ald", folder / "ald.h5", {}, {}, {"target=curve"}});
}

}  // namespace
}  // namespace superstep::baseline
