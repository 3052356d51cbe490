// Rows divided over plans: all are covered, and no division is cheaper.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/edge/model/split.h"

namespace superstep::edge {
namespace {

double cost_of(const std::vector<std::int64_t>& split, std::span<const TimedSize> sizes) {
  double sum = 0;
  for (const std::int64_t rows : split)
    for (const TimedSize& size : sizes) sum += size.rows == rows ? size.seconds : 0;
  return sum;
}

// The least cost of covering `rows` by sizes from `first` on, tried out.
double least(std::int64_t rows, std::span<const TimedSize> sizes) {
  if (rows <= 0) return 0;
  double best = std::numeric_limits<double>::infinity();
  for (const TimedSize& size : sizes) best = std::min(best, size.seconds + least(rows - size.rows, sizes));
  return best;
}

TEST(Split, CoversAllRowsAtLeastCost) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random(seed);
    std::vector<TimedSize> sizes;
    for (const std::int64_t rows : {1, 3, 4, 8}) sizes.push_back({rows, random.uniform(0.1, 3)});
    const auto splits = cheapest_splits(sizes, 12);
    ASSERT_EQ(splits.size(), 13U);
    EXPECT_TRUE(splits[0].empty());
    for (std::int64_t rows = 1; rows <= 12; ++rows) {
      const auto& split = splits[static_cast<std::size_t>(rows)];
      EXPECT_GE(std::accumulate(split.begin(), split.end(), std::int64_t{0}), rows);
      EXPECT_NEAR(cost_of(split, sizes), least(rows, sizes), 1e-12) << rows << " rows, seed " << seed;
    }
  }
}

TEST(Split, PadsWhereThatIsCheaper) {
  const std::vector<TimedSize> sizes{{1, 1.0}, {8, 1.5}};
  EXPECT_EQ(cheapest_splits(sizes, 8)[2], std::vector<std::int64_t>{8});
  EXPECT_EQ(cheapest_splits(sizes, 8)[1], std::vector<std::int64_t>{1});
  EXPECT_EQ(cheapest_splits(sizes, 9)[9], (std::vector<std::int64_t>{8, 1}));
}

}  // namespace
}  // namespace superstep::edge
