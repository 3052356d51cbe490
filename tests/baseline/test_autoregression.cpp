#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "superstep/baseline/series/autoregression.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"

namespace superstep::baseline {
namespace {

TEST(Autoregression, FitsALineAndItsNoise) {
  const std::vector<double> last = {0, 1, 2, 3}, next = {1, 2, 5, 6};
  const Forecast forecast = forecast_ar1(last, next, 10);
  // Least squares by hand: slope 1.8, intercept 0.8, squared residuals 0.8.
  EXPECT_NEAR(forecast.mean, 18.8, 1e-12);
  EXPECT_NEAR(forecast.deviation, std::sqrt(0.8 / 2), 1e-12);
  const Forecast constant = forecast_constant(next);
  EXPECT_NEAR(constant.mean, 3.5, 1e-12);
  EXPECT_NEAR(constant.deviation, std::sqrt(17.0 / 3), 1e-12);
  EXPECT_NEAR(Forecast({2, 3}).log_density(5), -0.5 - std::log(3 * std::sqrt(2 * std::numbers::pi)), 1e-12);
}

TEST(Autoregression, StandsBetweenFloorAndCeiling) {
  const ScratchFolder folder;
  generate("mcmc", folder / "r.h5", 2800, {"ar=0.4"});
  generate("mcmc", folder / "r.csv", 2800, {"ar=0.4"});
  const Report report = run_baseline("mcmc", folder / "r.h5", folder / "out.csv");
  std::printf("%s", report.text.c_str());
  EXPECT_GT(metric(report, "log_likelihood"), metric(report, "floor_log_likelihood"));
  EXPECT_LT(metric(report, "log_likelihood"), metric(report, "ceiling_log_likelihood"));
  EXPECT_LT(metric(report, "rmse"), metric(report, "floor_rmse"));
  EXPECT_NEAR(metric(run_baseline("mcmc", folder / "r.csv"), "log_likelihood"),
              metric(report, "log_likelihood"), 1e-9);
  expect_error(ErrorCode::invalid_argument, {"r.h5", "no series is longer than a window of 700 rows"},
               [&] { run_baseline("mcmc", folder / "r.h5", {}, {"window=700"}); });
}

}  // namespace
}  // namespace superstep::baseline
