// Stated standard deviations against errors that are drawn from them, that are too small, that say nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "superstep/base/random.h"
#include "superstep/workload/spread.h"

namespace superstep::workload {
namespace {

struct Drawn {
  std::vector<double> errors, spreads;
};

// Normal errors of `true_factor` times the stated spread, which varies from sample to sample.
Drawn drawn(double true_factor, bool informed = true) {
  RandomStream random(7, 0);
  Drawn made;
  for (int i = 0; i < 20000; ++i) {
    const double spread = std::exp(random.uniform(-1, 1)), other = std::exp(random.uniform(-1, 1));
    made.spreads.push_back(spread);
    made.errors.push_back(true_factor * (informed ? spread : other) * random.normal());
  }
  return made;
}

TEST(Spread, OfHonestStatementsHasTheSharesOfANormalError) {
  const Drawn made = drawn(1);
  const auto found = calibrate_spread(made.errors, made.spreads);
  ASSERT_TRUE(found);
  // Four standard errors of a share of 20,000 are 0.013; of the factor, with these weights, about 0.03.
  EXPECT_NEAR(found->inside_one, std::erf(1 / std::sqrt(2.0)), 0.013);
  EXPECT_NEAR(found->inside_two, std::erf(2 / std::sqrt(2.0)), 0.006);
  EXPECT_NEAR(found->factor, 1, 0.03);
  EXPECT_NEAR(found->times_for_90, 1.6449, 0.05);
  EXPECT_NEAR(found->inside_90, 0.9, 0.015);
  ASSERT_EQ(found->parts.size(), 10u);
  for (const auto& part : found->parts) EXPECT_NEAR(part.error / part.spread, 1, 0.08);
}

TEST(Spread, ThatIsTooSmallIsMendedByItsFactor) {
  const Drawn made = drawn(3);
  const auto found = calibrate_spread(made.errors, made.spreads);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->factor, 3, 0.09);
  EXPECT_NEAR(found->inside_one, std::erf(1 / 3.0 / std::sqrt(2.0)), 0.013);
  EXPECT_NEAR(found->inside_90, 0.9, 0.015);
  EXPECT_GT(found->rank_correlation, 0.3);
}

TEST(Spread, ThatKnowsNothingHasNoRankCorrelationAndFlatParts) {
  const Drawn made = drawn(1, false);
  const auto found = calibrate_spread(made.errors, made.spreads);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->rank_correlation, 0, 0.03);
  EXPECT_NEAR(found->parts.back().error / found->parts.front().error, 1, 0.12);
  EXPECT_GT(found->parts.back().spread / found->parts.front().spread, 5);
}

TEST(Spread, RanksByHand) {
  const double a[] = {1, 2, 3, 4, 5}, same[] = {10, 20, 30, 40, 500}, turned[] = {5, 4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(rank_correlation(a, same), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(a, turned), -1);
  // Ranks 0 1 2 3 against 0.5 0.5 2 3: 1 - 6 * 0.5 / 60 is for ranks without ties; by the definition 0.9487.
  const double four[] = {1, 2, 3, 4}, tied[] = {7, 7, 8, 9};
  EXPECT_NEAR(rank_correlation(four, tied), std::sqrt(0.9), 1e-12);
  const double flat[] = {2, 2, 2, 2};
  EXPECT_EQ(rank_correlation(four, flat), 0);
}

TEST(Spread, SaysNothingOfTooFewOfZerosAndOfWhatIsNotFinite) {
  const std::vector<double> few(19, 1.0), many(40, 1.0), zeros(40, 0.0);
  EXPECT_FALSE(calibrate_spread(few, few));
  EXPECT_FALSE(calibrate_spread(many, zeros));
  EXPECT_FALSE(calibrate_spread(many, few));
  std::vector<double> broken = many;
  broken[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(calibrate_spread(broken, many));
  EXPECT_TRUE(calibrate_spread(many, many));
  std::vector<double> one_zero = many;
  one_zero[0] = 0;  // holds no error
  EXPECT_NEAR(calibrate_spread(many, one_zero)->inside_one, 39.0 / 40, 1e-12);
}

}  // namespace
}  // namespace superstep::workload
