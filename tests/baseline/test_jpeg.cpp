#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/baseline/imaging/jpeg.h"
#include "superstep/baseline/imaging/ms_ssim.h"
#include "tests/expect_error.h"

namespace superstep::baseline {
namespace {

// Two pictures of 28 pixels a side: smooth waves, and noise.
std::vector<std::uint8_t> waves_and_noise() {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < 28; ++y)
    for (int x = 0; x < 28; ++x)
      pixels.push_back(static_cast<std::uint8_t>(128 + 60 * std::sin(0.3 * x) + 60 * std::cos(0.2 * y)));
  RandomStream random(1);
  for (int i = 0; i < 28 * 28; ++i) pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
  return pixels;
}

double error(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(double{1} * a[i] - b[i], 2);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

TEST(Jpeg, GivesBackWhatItWasGivenAsTheQualityAllows) {
  ThreadPool pool(2);
  const auto pixels = waves_and_noise();
  const GreyImages images{pixels, 28, 28};
  const JpegImages best = through_jpeg(images, 100, pool), worst = through_jpeg(images, 5, pool);
  EXPECT_LT(error(best.pixels, pixels), 1.0);
  EXPECT_GT(error(worst.pixels, pixels), 10 * error(best.pixels, pixels));
  EXPECT_GT(best.bytes, 4 * worst.bytes);
  // Smooth pictures come back where noise does not, each in its own place.
  const std::span<const std::uint8_t> smooth(worst.pixels.data(), 784);
  EXPECT_LT(error(smooth, std::span(pixels).first(784)), 12);
  EXPECT_EQ(through_jpeg(images, 60, pool).bytes, through_jpeg(images, 60, pool).bytes);
}

TEST(Jpeg, TakesTheBestQualityThatFits) {
  ThreadPool pool(1);
  const auto pixels = waves_and_noise();
  const GreyImages images{pixels, 28, 28};
  const auto made = through_jpeg_within(images, 300, pool);
  ASSERT_TRUE(made);
  EXPECT_LE(made->bytes, 300);
  EXPECT_GT(through_jpeg(images, made->quality + 1, pool).bytes, 300);
  EXPECT_FALSE(through_jpeg_within(images, 10, pool));
  EXPECT_EQ(through_jpeg_within(images, 1e6, pool)->quality, 100);
}

TEST(Jpeg, PassesOnWhatTheLibraryRefuses) {
  ThreadPool pool(1);
  const std::vector<std::uint8_t> row(70000);
  expect_error(ErrorCode::unsupported, {"JPEG", "65500"}, [&] { through_jpeg({row, 70000, 1}, 50, pool); });
}

TEST(MsSsim, IsOneForEqualPicturesAndLessForOthers) {
  std::vector<float> picture, brighter, noisy;
  RandomStream random(2);
  for (int y = 0; y < 28; ++y)
    for (int x = 0; x < 28; ++x) {
      picture.push_back(0.5f + 0.4f * std::sin(0.5f * static_cast<float>(x + y)));
      brighter.push_back(picture.back() + 0.05f);
      noisy.push_back(picture.back() + 0.2f * static_cast<float>(random.normal()));
    }
  EXPECT_NEAR(ms_ssim(picture, picture, 28, 28), 1, 1e-12);
  const double light = ms_ssim(picture, brighter, 28, 28), noise = ms_ssim(picture, noisy, 28, 28);
  EXPECT_GT(light, 0.98);
  EXPECT_LT(light, 1);
  EXPECT_LT(noise, 0.9);
  EXPECT_GT(noise, 0.1);
}

// One scale alone, of equal pictures but for their level: only the luminance counts, in closed form.
TEST(MsSsim, HasTheLuminanceOfItsFormula) {
  const std::vector<float> dark(12 * 12, 0.25f), light(12 * 12, 0.75f);
  const double c1 = 1e-4, expected = (2 * 0.25 * 0.75 + c1) / (0.25 * 0.25 + 0.75 * 0.75 + c1);
  EXPECT_NEAR(ms_ssim(dark, light, 12, 12), expected, 1e-6);
}

}  // namespace
}  // namespace superstep::baseline
