#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/sampling/diagnostics/convergence.h"

namespace superstep::sampling {
namespace {

TEST(Convergence, KnowsTheNormalDistribution) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-15);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-13);
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167813, 1e-12);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-10);
}

TEST(Convergence, SplitsAndRanks) {
  EXPECT_EQ(split_in_halves({{1, 2, 3, 4, 5}}), (Chains{{1, 2}, {4, 5}}));
  const Chains scores = normal_scores({{3, 1}, {3, 7}});
  // Ranks 2.5, 1, 2.5, 4 of four.
  EXPECT_NEAR(scores[0][0], 0, 1e-12);
  EXPECT_NEAR(scores[0][1], normal_quantile(0.625 / 4.25), 1e-12);
  EXPECT_NEAR(scores[1][1], -scores[0][1], 1e-12);
}

TEST(Convergence, ReducesScaleAsByHand) {
  // Means 2 and 5, variances 1 and 1 of three draws: within 1, all 2 / 3 + 4.5.
  EXPECT_NEAR(potential_scale_reduction({{1, 2, 3}, {4, 5, 6}}), std::sqrt(2.0 / 3 + 4.5), 1e-12);
  EXPECT_NEAR(potential_scale_reduction({{1, 2, 3}, {1, 2, 3}}), std::sqrt(2.0 / 3), 1e-12);
}

TEST(Convergence, CountsDrawsAsByHand) {
  // One chain 0 1 1 2 1 3 2 2: mean 1.5, squares 6. Sums of products at lags 1, 2 and 3: 0.75, 2 and -1.25.
  // With n = 8 and the variance 6 / 7 the correlations are 1 - (6/7 - c / 8) / (6/8): -1/56 at lag 1,
  // 4/21 at lag 2, -59/168 at lag 3. The first pair is positive, the second is not: 2 * 55/56 - 1 + 4/21.
  const double time = 2 * 55.0 / 56 - 1 + 4.0 / 21;
  EXPECT_NEAR(effective_draws({{0, 1, 1, 2, 1, 3, 2, 2}}), 8 / time, 1e-9);
}

// x' = a x + noise: of n draws n (1 - a) / (1 + a) are independent.
Chains autoregression(double a, std::size_t chains, int draws, double offset = 0) {
  Chains made(chains);
  for (std::size_t c = 0; c < chains; ++c) {
    RandomStream random(3, c);
    double x = random.normal();
    for (int i = 0; i < draws; ++i) {
      x = a * x + std::sqrt(1 - a * a) * random.normal();
      made[c].push_back(x + offset * static_cast<double>(c));
    }
  }
  return made;
}

TEST(Convergence, KnowsAutoregressions) {
  for (const double a : {0.0, 0.5, 0.9, -0.4}) {
    const Convergence found = convergence(autoregression(a, 4, 20000));
    const double expected = 80000 * (1 - a) / (1 + a);
    EXPECT_NEAR(found.bulk / expected, 1, 0.1) << a;
    EXPECT_NEAR(found.effective / expected, 1, 0.1) << a;
    EXPECT_LT(found.r_hat, 1.005) << a;
    EXPECT_NEAR(found.error_of_mean, std::sqrt(1 / expected), 0.1 * std::sqrt(1 / expected));
    if (a == 0) {
      EXPECT_NEAR(found.tail / expected, 1, 0.15);
    }
  }
}

TEST(Convergence, SeesChainsThatDisagree) {
  EXPECT_GT(convergence(autoregression(0, 4, 500, 1)).r_hat, 1.3);
  EXPECT_LT(convergence(autoregression(0, 4, 500, 1)).bulk, 20);
  Chains wide = autoregression(0, 4, 500);
  for (double& x : wide[0]) x *= 5;  // the same location, another spread
  EXPECT_GT(convergence(wide).r_hat, 1.1);
}

TEST(Convergence, SaysNothingOfNothing) {
  EXPECT_TRUE(std::isnan(convergence({}).r_hat));
  EXPECT_TRUE(std::isnan(convergence({{1, 2, 3}}).r_hat));
  EXPECT_TRUE(std::isnan(convergence({std::vector<double>(100, 2.0)}).r_hat));
  EXPECT_TRUE(std::isnan(convergence({{1, 2, 3, std::nan(""), 5, 6, 7, 8, 9, 10}}).bulk));
}

TEST(Convergence, CountsEnergiesAsByHand) {
  // Jumps 1, 4, 1: 6; about the mean 2 of 1 2 ... squares 1 + 0 + 4 + 1.
  const double energies[] = {1, 2, 4, 1};
  EXPECT_NEAR(energy_information(energies), (1 + 4 + 9) / (1 + 0 + 4 + 1.0), 1e-12);
}

}  // namespace
}  // namespace superstep::sampling
