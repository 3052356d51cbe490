// Integer division, quantiles, elapsed time.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "superstep/base/integers.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"

namespace superstep {
namespace {

TEST(Integers, DivisionRoundsAsItSaysOnBothSidesOfZero) {
  for (std::int64_t b = 1; b < 8; ++b)
    for (std::int64_t a = -40; a <= 40; ++a) {
      EXPECT_EQ(floor_div(a, b), static_cast<std::int64_t>(std::floor(double(a) / double(b))))
          << a << " " << b;
      EXPECT_EQ(ceil_div(a, b), static_cast<std::int64_t>(std::ceil(double(a) / double(b)))) << a << " " << b;
      EXPECT_EQ(round_up(a, b) % b, 0);
      EXPECT_TRUE(round_up(a, b) >= a && round_up(a, b) < a + b) << a << " " << b;
    }
  EXPECT_EQ(ceil_div(std::int64_t{7}, 2), 4);
  EXPECT_EQ(round_up(std::size_t{65}, std::size_t{64}), 128u);
}

TEST(Statistics, QuantilesInterpolateAndRanksDoNot) {
  const std::vector<double> values = {4, 1, 3, 2}, sorted = {1, 2, 3, 4};
  EXPECT_EQ(median(values), 2.5);
  EXPECT_EQ(quantile(values, 0.25), 1.75);
  EXPECT_EQ(quantile(values, 2), 4);
  EXPECT_EQ(nearest_rank(sorted, 0.5), 2);
  EXPECT_EQ(nearest_rank(sorted, 0.51), 3);
  EXPECT_EQ(nearest_rank(sorted, 0), 1);
  EXPECT_EQ(nearest_rank(sorted, 1), 4);
  std::vector<double> twenty(20);
  for (std::size_t i = 0; i < 20; ++i) twenty[i] = double(i + 1);
  EXPECT_EQ(nearest_rank(twenty, 0.95), 19);  // 0.95 x 20 is a little more than 19 in binary
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_TRUE(std::isnan(nearest_rank({}, 0.5)));
}

TEST(Stopwatch, NeverGoesBack) {
  const Stopwatch watch;
  const double before = monotonic_seconds();
  double last = 0;
  for (int i = 0; i < 1000; ++i) {
    const double now = watch.seconds();
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_GE(monotonic_seconds() - before, 0);
}

}  // namespace
}  // namespace superstep
