// Volumes brought to one scale, and slices that are varied.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "superstep/workload/vision/brain_volumes.h"

namespace superstep::workload {
namespace {

// Slices [n, 2, 8, 8] of noise: the second channel is four times as bright as the first.
Tensor noise(std::int64_t slices, std::uint64_t seed) {
  Tensor tensor(ElementType::u8, {slices, 2, 8, 8});
  RandomStream random(seed);
  const auto bytes = tensor.as<std::uint8_t>();
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(random.uniform(0, i / 64 % 2 ? 200 : 50));
  return tensor;
}

TEST(VolumeScales, HaveMeanZeroAndDeviationOneInEveryChannelOfAVolume) {
  Tensor slices = noise(6, 3);
  // The second volume, slices 2 to 5, is twice as dark.
  const auto bytes = slices.as<std::uint8_t>();
  for (std::size_t i = 2 * 128; i < bytes.size(); ++i) bytes[i] /= 2;
  const Tensor volumes = Tensor::from<std::int32_t>({6}, {7, 7, 3, 3, 3, 3});
  const VolumeScales scales(slices, &volumes);
  for (const auto& [first, last] : {std::pair(0, 2), std::pair(2, 6)})
    for (std::size_t channel = 0; channel < 2; ++channel) {
      double sum = 0, squares = 0, most = -1e9, least = 1e9;
      for (int slice = first; slice < last; ++slice) {
        std::vector<float> row(128);
        scales.scale(slices, slice, row);
        for (std::size_t i = channel * 64; i < channel * 64 + 64; ++i) {
          const double value = static_cast<double>(row[i]);
          sum += value, squares += value * value;
          most = std::max(most, value), least = std::min(least, value);
        }
      }
      const double count = 64.0 * (last - first);
      EXPECT_NEAR(sum / count, 0, 1e-5);
      EXPECT_NEAR(squares / count, 1, 1e-4);
      // An even distribution between the percentiles 10 and 99: 45 and 44 of 90.5 deviations of 26.4 each.
      EXPECT_NEAR(most, 1.7, 0.25);
      EXPECT_NEAR(least, -1.55, 0.25);
    }
}

TEST(VolumeScales, WhatDoesNotVaryIsZeroAndNothingIsOneVolume) {
  Tensor slices(ElementType::u8, {2, 2, 8, 8});
  std::ranges::fill(slices.as<std::uint8_t>(), std::uint8_t{9});
  const VolumeScales scales(slices, nullptr);
  std::vector<float> row(128, 5);
  scales.scale(slices, 1, row);
  for (const float value : row) EXPECT_EQ(value, 0);
  const Tensor other = noise(4, 1);
  const VolumeScales all(other, nullptr);
  double sum = 0;
  for (std::int64_t slice = 0; slice < 4; ++slice) {
    all.scale(other, slice, row);
    for (std::size_t i = 0; i < 64; ++i) sum += static_cast<double>(row[i]);
  }
  EXPECT_NEAR(sum / 256, 0, 1e-5);
}

// A ramp stays a ramp inside: its slope is turned, scaled and mirrored, and its value in the middle stays.
TEST(VariedSlices, ARampIsTurnedScaledAndMirrored) {
  constexpr std::int64_t size = 33;
  int mirrored = 0;
  double largest_angle = 0, largest_scale = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<float> image(size * size), mask(size * size);
    for (std::size_t i = 0; i < image.size(); ++i) {
      image[i] = static_cast<float>(i % size);
      mask[i] = static_cast<float>(i / size >= 12 && i / size < 21 && i % size >= 12 && i % size < 21);
    }
    RandomStream random(seed);
    vary_slice(random, size, image, mask);
    const auto at = [&](int column, int row) {
      return static_cast<double>(image[static_cast<std::size_t>(row * size + column)]);
    };
    EXPECT_NEAR(at(16, 16), 16, 1e-4);
    const double across = (at(20, 16) - at(12, 16)) / 8, down = (at(16, 20) - at(16, 12)) / 8;
    const double scale = 1 / std::hypot(across, down), angle = std::atan(down / across) * 180 / std::acos(-1);
    EXPECT_TRUE(scale > 0.9499 && scale < 1.0501) << scale;
    EXPECT_LT(std::abs(angle), 15.001);
    mirrored += across < 0;
    largest_angle = std::max(largest_angle, std::abs(angle));
    largest_scale = std::max(largest_scale, std::abs(scale - 1));
    // Areas grow by the square of the scale, to what a border of 36 pixels rounds.
    const double area = static_cast<double>(std::ranges::count(mask, 1.0f));
    EXPECT_NEAR(area, 81 * scale * scale, 13);
    EXPECT_EQ(std::ranges::count(mask, 0.0f) + std::ranges::count(mask, 1.0f), size * size);
  }
  EXPECT_NEAR(mirrored, 100, 30);
  EXPECT_GT(largest_angle, 13);
  EXPECT_GT(largest_scale, 0.04);
}

TEST(VariedSlices, WhatLiesOutsideGoesOnAsTheBorderEnds) {
  std::vector<float> image(2 * 16 * 16, 3.5f), mask(16 * 16, 1);
  RandomStream random(4);
  vary_slice(random, 16, image, mask);
  for (const float value : image) EXPECT_FLOAT_EQ(value, 3.5f);
}

}  // namespace
}  // namespace superstep::workload
