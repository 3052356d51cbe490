#include <gtest/gtest.h>

#include <cmath>

#include "superstep/file/csv.h"
#include "superstep/physics/returns.h"
#include "tests/expect_error.h"
#include "tests/physics/workload_generators.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

TEST(Returns, HaveTheMomentsOfTheModel) {
  // Less persistence than by default, so that the moments settle.
  const ReturnModel model{0.01, 0.3, 0.2, 0.15, 0.5};
  double mean = 0, square = 0, covariance = 0, noise2 = 0, noise4 = 0, last = 0;
  const int steps = 400000;
  const auto series = return_series(model, 1, 0, steps);
  for (const ReturnStep& step : series) {
    const double r = step.value - model.mean, e = step.value - step.expected;
    mean += r, square += r * r, covariance += r * last;
    noise2 += e * e, noise4 += e * e * e * e;
    last = r;
  }
  EXPECT_NEAR(mean / steps, 0, 0.01);
  EXPECT_NEAR(square / steps / model.variance(), 1, 0.02);
  EXPECT_NEAR(covariance / square, model.ar, 0.01);
  EXPECT_NEAR(noise2 / steps / model.noise_variance(), 1, 0.02);
  EXPECT_NEAR(noise4 / steps / std::pow(noise2 / steps, 2), model.noise_kurtosis(), 0.25);
  EXPECT_GT(model.noise_kurtosis(), 3.2);
}

TEST(Returns, VolatilityFollowsItsRecursion) {
  const ReturnModel model;
  const auto series = return_series(model, 2, 5, 50);
  for (std::size_t t = 1; t < series.size(); ++t) {
    const double e = series[t - 1].value - series[t - 1].expected;
    const double variance =
        model.omega + model.alpha * e * e + model.beta * std::pow(series[t - 1].deviation, 2);
    EXPECT_NEAR(series[t].deviation, std::sqrt(variance), 1e-12);
    EXPECT_NEAR(series[t].expected, model.mean + model.ar * (series[t - 1].value - model.mean), 1e-15);
  }
}

TEST(ReturnGenerator, SamplesDoNotDependOnThreads) {
  expect_same_bits_on_any_threads("mcmc", 60, {"rows=25"});
}

TEST(ReturnGenerator, LagsAreTheLabelsOfTheRowsBefore) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator = make_generator("mcmc", {"rows=40"});
  const auto made = generate_in_memory(*generator, 3, 0, 80, pool);
  const Tensor &x = field(*generator, made, "x"), &y = field(*generator, made, "y");
  for (std::int64_t i = 30; i < 40; ++i)
    for (std::int64_t lag = 1; lag <= 22; ++lag) EXPECT_EQ(x.at(i * 22 + lag - 1), y.at(i - lag));
  EXPECT_NE(x.at(40 * 22), y.at(39));  // another series
  generator->write({folder / "r.csv", 3, 80, &pool});
  CsvReader table(folder / "r.csv");
  EXPECT_EQ(table.header().size(), 27u);
  for (std::int64_t i = 0; i < 80; ++i) {
    ASSERT_TRUE(table.next());
    EXPECT_EQ(table.integer(table.column("series")), i / 40);
    EXPECT_EQ(static_cast<float>(table.number(table.column("y"))), static_cast<float>(y.at(i)));
    EXPECT_EQ(static_cast<float>(table.number(table.column("lag_22"))),
              static_cast<float>(x.at(i * 22 + 21)));
  }
}

TEST(ReturnGenerator, RefusesAVarianceWithoutBound) {
  expect_error(ErrorCode::invalid_argument, {"alpha + beta is not below 1"}, [] {
    make_generator("mcmc", {"alpha=0.2", "beta=0.8"});
  });
}

}  // namespace
}  // namespace superstep::data
