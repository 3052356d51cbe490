// What samples say together: their median, how sure it is, and how many a percentile needs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "superstep/base/statistics.h"
#include "superstep/record/summary.h"

namespace superstep::record {
namespace {

TEST(Summary, OfKnownNumbers) {
  const std::vector<double> samples{5, 1, 3, 2, 4};
  const Summary s = summarize(samples);
  EXPECT_EQ(s.count, 5U);
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.mean, 3);
  EXPECT_NEAR(s.stddev, std::sqrt(2.5), 1e-12);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.max, 5);
  EXPECT_EQ(s.low, 1);  // too few samples for 95 %: all of them, and what that covers
  EXPECT_NEAR(s.coverage, 1 - 2 * std::pow(0.5, 5), 1e-12);
}

// The ranks of the sign test: for n = 20 they are the 6th and the 15th (tables of the binomial, p = 0.0414).
TEST(Summary, TheIntervalIsThatOfTheSignTest) {
  std::vector<double> samples;
  for (int i = 0; i < 20; ++i) samples.push_back(1 + (7 * i) % 20);  // 1 to 20, mixed
  const Summary s = summarize(samples);
  EXPECT_EQ(s.clustering, 1);
  EXPECT_EQ(s.low, 6);
  EXPECT_EQ(s.high, 15);
  EXPECT_NEAR(s.coverage, 0.9586, 1e-4);
}

TEST(Summary, TheIntervalHoldsTheMedianAsOftenAsItSays) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> skewed(0, 1);  // median 1
  int held = 0;
  constexpr int trials = 2000;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> samples;
    for (int i = 0; i < 25; ++i) samples.push_back(skewed(random));
    const Summary s = summarize(samples);
    held += s.low <= 1 && 1 <= s.high;
  }
  EXPECT_GT(held, 0.945 * trials);
  EXPECT_LT(held, 0.985 * trials);
}

// A level that changes every ten samples: as many samples, a tenth of the news. The sign test of independent
// samples would hold the median in half of the cases.
TEST(Summary, TheIntervalOfClusteredSamplesIsWider) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal(0, 1);
  int held = 0, held_if_independent = 0;
  constexpr int trials = 500;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> samples;
    for (int block = 0; block < 20; ++block) {
      const double level = normal(random);
      for (int i = 0; i < 10; ++i) samples.push_back(level + 0.1 * normal(random));
    }
    const Summary s = summarize(samples);
    held += s.low <= 0 && 0 <= s.high;
    std::ranges::sort(samples);
    held_if_independent += samples[85] <= 0 && 0 <= samples[114];  // 95 % of 200 independent ones
  }
  EXPECT_GT(held, 0.85 * trials);
  EXPECT_LT(held_if_independent, 0.55 * trials);
}

// Ten blocks of two, all of a block on one side: distances of one from the median in each, where one half is
// the rule.
TEST(Summary, ClusteringIsTheVarianceOfBlocks) {
  std::vector<double> samples;
  for (int block = 0; block < 10; ++block)
    for (int i = 0; i < 2; ++i) samples.push_back(block % 2 == 0 ? 1.0 + 0.001 * block : 2.0 + 0.001 * block);
  EXPECT_EQ(summarize(samples).clustering, 1) << "notable from above two on";
  samples.clear();
  for (int block = 0; block < 10; ++block)
    for (int i = 0; i < 6; ++i) samples.push_back((block % 2 == 0 ? 1.0 : 2.0) + 0.001 * block);
  const Summary s = summarize(samples);
  EXPECT_NEAR(s.clustering, 9 / 1.5, 1e-12);
  // 60 samples count as ten: 30 - 1.96 sqrt(60 * 6) / 2 = 11.4.
  std::ranges::sort(samples);
  EXPECT_EQ(s.low, samples[11]);
  EXPECT_EQ(s.high, samples[48]);
  EXPECT_EQ(s.coverage, 0.95);
}

// The most that there can be: all of each half of the time on one side.
// What equals the median is half below it: samples of a coarse clock are not clustered.
TEST(Summary, EqualSamplesAreNotClustered) {
  const Summary s = summarize(std::vector<double>(40, 2.5));
  EXPECT_EQ(s.clustering, 1);
  EXPECT_EQ(s.drift, 0);
  EXPECT_EQ(s.low, 2.5);
  EXPECT_EQ(summarize(std::vector<double>(9, 0)).drift, 0) << "a first third of zeros";
}

TEST(Summary, TheMostClusteredSamplesHaveAnInterval) {
  std::vector<double> samples;
  for (int block = 0; block < 10; ++block)
    for (int i = 0; i < 60; ++i) samples.push_back((block < 5 ? 1.0 : 2.0) + 0.001 * block);
  const Summary s = summarize(samples);
  EXPECT_NEAR(s.clustering, 900 / 15.0, 1e-12);
  std::ranges::sort(samples);
  EXPECT_EQ(s.low, samples[114]);  // 300 - 1.96 sqrt(600 * 60) / 2 = 114.06
  EXPECT_EQ(s.high, samples[485]);
}

TEST(Summary, PercentilesAreNearestRank) {
  std::vector<double> sorted;
  for (int i = 1; i <= 200; ++i) sorted.push_back(i);
  EXPECT_EQ(nearest_rank(sorted, 0.9), 180);
  EXPECT_EQ(nearest_rank(sorted, 0.99), 198);
  EXPECT_EQ(nearest_rank(sorted, 0.0), 1);
  EXPECT_EQ(samples_needed(0.99), 1000U);
}

}  // namespace
}  // namespace superstep::record
