#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "superstep/language/decode/sampling.h"
#include "tests/expect_error.h"

namespace superstep::language {
namespace {

const std::vector<float> scores{1, 3, 2, 0, 3};

std::map<std::int32_t, int> counts_of(const SamplingSettings& settings, int draws) {
  Sampler sampler(settings);
  std::map<std::int32_t, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[sampler.next(scores)];
  return counts;
}

TEST(Sampling, WithoutTemperatureTheLikeliestIsTaken) {
  EXPECT_EQ(counts_of({}, 10), (std::map<std::int32_t, int>{{1, 10}}));
}

TEST(Sampling, DrawsByTheOddsOfTheModel) {
  constexpr int draws = 20000;
  for (const double temperature : {0.7, 1.0, 2.0}) {
    auto counts = counts_of({.temperature = temperature}, draws);
    double sum = 0;
    for (const float score : scores) sum += std::exp(score / temperature);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double share = std::exp(scores[i] / temperature) / sum;
      EXPECT_NEAR(counts[static_cast<std::int32_t>(i)], draws * share, 5 * std::sqrt(draws * share)) << i;
    }
  }
}

TEST(Sampling, KeepsTheLikeliest) {
  for (const auto& [token, count] : counts_of({.temperature = 5, .top_k = 3}, 2000))
    EXPECT_TRUE(token == 1 || token == 4 || token == 2) << token;
  // Tokens 1 and 4 hold .39 each: one is not enough for .5, two are.
  const auto kept = counts_of({.temperature = 1, .top_p = 0.5}, 2000);
  EXPECT_EQ(kept.size(), 2u);
  EXPECT_TRUE(kept.contains(1) && kept.contains(4));
}

TEST(Sampling, TheSeedDecides) {
  const auto draw = [](std::uint64_t seed) {
    Sampler sampler({.temperature = 1, .seed = seed});
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(sampler.next(scores));
    return tokens;
  };
  EXPECT_EQ(draw(4), draw(4));
  EXPECT_NE(draw(4), draw(5));
}

TEST(Sampling, RefusesWhatMakesNoSense) {
  expect_error(ErrorCode::invalid_argument, {"--temperature"}, [] { Sampler({.temperature = -1}); });
  expect_error(ErrorCode::invalid_argument, {"--top-p"}, [] { Sampler({.top_p = 0}); });
  Sampler sampler({});
  const std::vector<float> none{1, NAN};
  expect_error(ErrorCode::diverged, {"no number"}, [&] { sampler.next(none); });
}

}  // namespace
}  // namespace superstep::language
