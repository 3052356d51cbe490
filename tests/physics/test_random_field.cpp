#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "superstep/physics/random_field.h"

namespace superstep::data {
namespace {

TEST(RandomField, HasUnitVarianceInOneAndTwoDimensions) {
  const struct { int width, height; } shapes[] = {{128, 128}, {1, 4000}, {4000, 1}};
  for (const auto& shape : shapes) {
    double square = 0, count = 0;
    for (std::uint64_t k = 0; k < 20; ++k) {
      RandomStream random(1, k);
      for (float value : gaussian_field(random, shape.width, shape.height, 4))
        square += value * value, ++count;
    }
    EXPECT_NEAR(square / count, 1, 0.08) << shape.width << " x " << shape.height;
  }
}

TEST(RandomField, CorrelationFallsToOneOverEAtTwiceTheSigma) {
  double product = 0, square = 0;
  for (std::uint64_t k = 0; k < 10; ++k) {
    RandomStream random(2, k);
    const std::vector<float> field = gaussian_field(random, 128, 128, 5);
    for (std::size_t y = 0; y < 128; ++y)
      for (std::size_t x = 0; x < 128; ++x) {
        product += field[y * 128 + x] * field[y * 128 + (x + 10) % 128];
        square += field[y * 128 + x] * field[y * 128 + x];
      }
  }
  EXPECT_NEAR(product / square, std::exp(-1.0), 0.05);
}

TEST(RandomField, BlurKeepsTheSumAndAConstant) {
  const std::vector<float> kernel = gaussian_kernel(2);
  EXPECT_NEAR(std::accumulate(kernel.begin(), kernel.end(), 0.0), 1, 1e-6);
  EXPECT_EQ(gaussian_kernel(0), std::vector<float>{1});
  std::vector<float> spike(20 * 12, 0.0f), flat(20 * 12, 3.0f);
  spike[5 * 20 + 19] = 1;
  blur(spike, 20, 12, kernel, Border::periodic);
  EXPECT_NEAR(std::accumulate(spike.begin(), spike.end(), 0.0), 1, 1e-5);
  EXPECT_GT(spike[5 * 20 + 0], 0.02f);  // around the edge
  blur(flat, 20, 12, kernel, Border::clamp);
  for (float value : flat) EXPECT_NEAR(value, 3, 1e-5);
}

}  // namespace
}  // namespace superstep::data
