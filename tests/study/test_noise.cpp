// The gradient noise scale against a case in which it is known, and against what gradients cannot tell.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/study/quality/noise.h"

namespace superstep::study {
namespace {

// A quadratic loss |w - x|^2 / 2 over samples x of mean 0 and deviation `deviation` in each of `parameters`
// directions: at w its gradient has the mean w, and a sample's differs from it by x. So |G|^2 = |w|^2 and
// tr(Sigma) = parameters deviation^2.
std::optional<NoiseScale> measured(std::size_t parameters, double w, double deviation, std::int64_t batch,
                                   int batches, std::uint64_t seed) {
  NoiseMeter meter(parameters, batch);
  RandomStream random(seed);
  std::vector<float> gradient(parameters);
  for (int i = 0; i < batches; ++i) {
    for (float& value : gradient) {
      double sum = 0;
      for (std::int64_t sample = 0; sample < batch; ++sample) sum += w - deviation * random.normal();
      value = static_cast<float>(sum / static_cast<double>(batch));
    }
    meter.add(gradient);
  }
  return meter.result();
}

TEST(NoiseScales, AreThoseOfAQuadratic) {
  // 50 x 4 / (50 x 0.25) = 16 samples.
  int held = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto scale = measured(50, 0.5, 2, 16, 128, seed);
    ASSERT_TRUE(scale);
    EXPECT_NEAR(scale->noise, 200, 20);
    EXPECT_NEAR(scale->gradient, 12.5, 2);
    EXPECT_NEAR(scale->batch, 16, 3);
    EXPECT_EQ(scale->samples, 16 * 128);
    held += scale->low <= 16 && 16 <= scale->high ? 1 : 0;
  }
  EXPECT_GE(held, 16) << "two standard errors";
}

// Whatever the small batch is, and from few samples: both terms are unbiased, where the norm of the mean
// gradient holds its noise.
TEST(NoiseScales, AreUnbiased) {
  for (const std::int64_t batch : {2, 8}) {
    constexpr int draws = 60;
    double gradient = 0, noise = 0;
    for (std::uint64_t seed = 1; seed <= draws; ++seed) {
      const auto scale = measured(50, 0.5, 2, batch, 16, seed);
      ASSERT_TRUE(scale);
      gradient += scale->gradient / draws;
      noise += scale->noise / draws;
    }
    EXPECT_NEAR(noise, 200, 10) << batch;
    EXPECT_NEAR(gradient, 12.5, 1) << batch << ": with its noise it would be "
                                   << 12.5 + 200.0 / (16.0 * static_cast<double>(batch));
  }
}

TEST(NoiseScales, SayThatAGradientIsNotResolved) {
  const auto scale = measured(50, 0, 1, 4, 32, 5);
  ASSERT_TRUE(scale);
  EXPECT_TRUE(std::isinf(scale->high));
  EXPECT_GT(scale->low, 4) << "at least so many samples are not enough";
}

TEST(NoiseScales, NeedGradientsThatDiffer) {
  EXPECT_FALSE(measured(10, 1, 1, 4, 15, 1)) << "fewer than two batches in a group";
  EXPECT_FALSE(measured(10, 1, 0, 4, 64, 1)) << "no noise";
}

}  // namespace
}  // namespace superstep::study
