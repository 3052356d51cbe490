#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "superstep/physics/generator.h"
#include "superstep/physics/xray/cookiebox.h"

namespace superstep::data {
namespace {

Shot one_spike(double kick, double polarization) {
  Shot shot;
  shot.spikes = {{60.3, 0.7, 1.2}};
  shot.kick = kick;
  shot.polarization = polarization;
  shot.width = 3.3;
  return shot;
}

double row_sum(const CookieboxDensity& density, std::size_t row) {
  const auto first = density.begin() + static_cast<std::ptrdiff_t>(row * cookiebox_bins);
  return std::accumulate(first, first + cookiebox_bins, 0.0);
}

// The centroid of a row above the background, in bins.
double ridge(const CookieboxDensity& density, std::size_t row, double background) {
  double sum = 0, moment = 0;
  for (std::size_t bin = 0; bin < cookiebox_bins; ++bin) {
    const double value = density[row * cookiebox_bins + bin] - background;
    sum += value, moment += value * (static_cast<double>(bin) + 0.5);
  }
  return moment / sum;
}

TEST(Cookiebox, WithoutAKickTheRidgeIsStraight) {
  const Shot shot = one_spike(0, 0.8);
  const CookieboxDensity density = density_of(shot);
  for (std::size_t row = 0; row < cookiebox_angles; ++row)
    EXPECT_NEAR(ridge(density, row, shot.background()), 60.3, 1e-2);
}

TEST(Cookiebox, WithAKickTheRidgeIsACosine) {
  const Shot shot = one_spike(15, 0.5);
  const CookieboxDensity density = density_of(shot);
  for (std::size_t row = 0; row < cookiebox_angles; ++row) {
    const double angle = 2 * M_PI * static_cast<double>(row) / cookiebox_angles;
    EXPECT_NEAR(ridge(density, row, shot.background()), 60.3 + 15 * std::cos(angle + 0.7), 1e-2);
  }
}

TEST(Cookiebox, UnpolarizedRowsHaveEqualIntegrals) {
  const CookieboxDensity flat = density_of(one_spike(12, 0)), polarized = density_of(one_spike(12, 0.4));
  const double expected = 128 * (0.0005 + 0.002 * 1.2) + 1.2 * 3.3 / 2;
  double least = 1e9;
  for (std::size_t row = 0; row < cookiebox_angles; ++row) {
    EXPECT_NEAR(row_sum(flat, row), expected, 1e-4);
    least = std::min(least, row_sum(polarized, row));
  }
  EXPECT_LT(least, 0.8 * expected);  // a control: polarization makes them differ
}

TEST(Cookiebox, HitsAreFiveTimesTheIntegralAndPoisson) {
  const CookieboxDensity density = density_of(one_spike(12, 0.6));
  constexpr int shots = 600;
  std::vector<double> mean(cookiebox_angles, 0.0), square(cookiebox_angles, 0.0);
  for (std::uint64_t shot = 0; shot < shots; ++shot) {
    RandomStream random(4, shot);
    const std::vector<std::uint8_t> counts = draw_histogram(random, density);
    for (std::size_t row = 0; row < cookiebox_angles; ++row) {
      const auto first = counts.begin() + static_cast<std::ptrdiff_t>(row * cookiebox_bins);
      const double hits = std::accumulate(first, first + cookiebox_bins, 0);
      mean[row] += hits / shots, square[row] += hits * hits / shots;
    }
  }
  double chi = 0, dispersion = 0;
  for (std::size_t row = 0; row < cookiebox_angles; ++row) {
    const double expected = 5 * row_sum(density, row);
    chi += std::pow(mean[row] - expected, 2) / (expected / shots) / cookiebox_angles;
    dispersion += (square[row] - mean[row] * mean[row]) / expected / cookiebox_angles;
  }
  EXPECT_NEAR(chi, 1, 0.45);  // the mean of 128 squares of normal deviates: 1 +- 0.125
  EXPECT_NEAR(dispersion, 1, 0.03);
}

TEST(Cookiebox, AveragedHistogramsConvergeLikeTheRootOfTheirNumber) {
  const CookieboxDensity density = density_of(one_spike(12, 0.6));
  std::vector<double> sum(density.size(), 0.0);
  const auto distance = [&](double shots) {
    double square = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) square += std::pow(sum[i] / shots / 5 - density[i], 2);
    return std::sqrt(square);
  };
  double early = 0;
  for (std::uint64_t shot = 0; shot < 2000; ++shot) {
    RandomStream random(5, shot);
    const std::vector<std::uint8_t> counts = draw_histogram(random, density);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += counts[i];
    if (shot + 1 == 20) early = distance(20);
  }
  EXPECT_NEAR(early / distance(2000), 10, 0.5);
}

TEST(CookieboxGenerator, DrawsAreAsStatedAndTheSameOnAnyNumberOfThreads) {
  const GeneratorEntry& entry = find_generator("cookienetae");
  const std::vector<std::string> test{"part=test"};
  const auto generator = entry.make(Options(entry.options, test));
  EXPECT_EQ(generator->fields()[0].name, "X_test");
  ThreadPool one(1), three(3);
  const auto a = generate_in_memory(*generator, 1, 0, 200, one),
             b = generate_in_memory(*generator, 1, 0, 200, three);
  for (std::size_t f = 0; f < a.size(); ++f)
    EXPECT_EQ(std::memcmp(a[f].bytes(), b[f].bytes(), a[f].byte_count()), 0);
  double spikes = 0, amplitude = 0, centre = 0, electrons = 0, density = 0;
  for (std::int64_t k = 0; k < 200; ++k) {
    spikes += a[3].at(k);
    for (std::int64_t s = 0; s < static_cast<std::int64_t>(a[3].at(k)); ++s) {
      centre += a[2].at((k * 16 + s) * 3);
      amplitude += a[2].at((k * 16 + s) * 3 + 2);
    }
  }
  for (std::int64_t i = 0; i < a[0].element_count(); ++i) electrons += a[0].at(i), density += a[1].at(i);
  EXPECT_NEAR(spikes / 200, 3, 0.4);
  EXPECT_NEAR(centre / spikes, 64, 1);
  EXPECT_NEAR(amplitude / spikes, 1, 0.06);
  EXPECT_NEAR(electrons / density, 5, 0.02);
}

}  // namespace
}  // namespace superstep::data
