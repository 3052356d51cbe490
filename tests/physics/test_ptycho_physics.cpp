#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/physics/fft.h"
#include "superstep/physics/xray/ptycho_diffraction.h"
#include "superstep/physics/xray/ptycho_object.h"
#include "superstep/physics/xray/ptycho_probe.h"
#include "superstep/physics/xray/ptycho_scan.h"

namespace superstep::data {
namespace {

using Complex = std::complex<double>;
using Field = std::vector<Complex>;

constexpr int n = 32, extent = 48;

Field random_object(int height, int width) {
  RandomStream random(11);
  const auto object = transmission(thickness_map(random, height, width), Material{});
  return {object.begin(), object.end()};
}

Field probe_of(const ComplexField& probe) { return {probe.begin(), probe.end()}; }

std::vector<double> pattern(const Field& probe, const Field& object, int width, Position at) {
  Field wave(probe.size());
  std::vector<double> intensity(probe.size());
  exit_wave<double>(probe, n, object, width, at, wave);
  far_field_intensity<double>(wave, n, intensity);
  return intensity;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest / *std::max_element(a.begin(), a.end());
}

TEST(PtychoPhysics, IntensityIsThatOfTheExitWave) {
  const Field probe = probe_of(zone_plate_probe(n, {})), object = random_object(extent, extent);
  Field wave(probe.size());
  exit_wave<double>(probe, n, object, extent, {5, 9}, wave);
  double expected = 0;
  for (const Complex& value : wave) expected += std::norm(value);
  const double found = sum(pattern(probe, object, extent, {5, 9}));
  EXPECT_NEAR(found / expected, 1, 1e-12);
  EXPECT_GT(std::abs(found / sum(pattern(probe, object, extent, {6, 9})) - 1), 1e-12);  // another window
}

TEST(PtychoPhysics, UniformObjectShowsTheProbe) {
  const Field probe = probe_of(zone_plate_probe(n, {}));
  const Field uniform(extent * extent, std::polar(0.8, -1.0));
  Field transformed = probe;
  thread_fft<double>({n, n}).forward(transformed);
  Field shifted(transformed.size());
  fft_shift<Complex>(transformed, {n, n}, shifted);
  std::vector<double> expected;
  for (const Complex& value : shifted) expected.push_back(0.64 * std::norm(value) / (n * n));
  EXPECT_LT(largest_difference(pattern(probe, uniform, extent, {3, 4}), expected), 1e-12);
}

TEST(PtychoPhysics, ShiftingObjectAndWindowTogetherChangesNothing) {
  const Field probe = probe_of(zone_plate_probe(n, {})), object = random_object(extent, extent);
  Field shifted(object.size());
  for (int y = 0; y < extent; ++y)
    for (int x = 0; x < extent; ++x)
      shifted[static_cast<std::size_t>((y + 3) % extent * extent + (x + 7) % extent)] =
          object[static_cast<std::size_t>(y * extent + x)];
  EXPECT_EQ(
      largest_difference(pattern(probe, object, extent, {2, 5}), pattern(probe, shifted, extent, {5, 12})),
      0);
  EXPECT_GT(
      largest_difference(pattern(probe, object, extent, {2, 5}), pattern(probe, shifted, extent, {2, 5})),
      1e-3);
}

TEST(PtychoPhysics, TwinHasTheSamePattern) {
  const Field probe = probe_of(gaussian_probe(n, 8)), object = random_object(n, n);
  Field twin(object.size()), flipped(object.size());
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x) {
      const auto from = object[static_cast<std::size_t>((n - y) % n * n + (n - x) % n)];
      flipped[static_cast<std::size_t>(y * n + x)] = from;
      twin[static_cast<std::size_t>(y * n + x)] = std::conj(from);
    }
  const auto original = pattern(probe, object, n, {0, 0});
  EXPECT_LT(largest_difference(original, pattern(probe, twin, n, {0, 0})), 1e-12);
  EXPECT_GT(largest_difference(original, pattern(probe, flipped, n, {0, 0})), 1e-3);  // not conjugated
}

TEST(PtychoPhysics, TransmissionFollowsTheThickness) {
  Map ramp(1, 3);
  ramp.values = {0, 0.5f, 1};
  const Material material;
  const auto object = transmission(ramp, material);
  for (std::size_t i = 0; i < 3; ++i) {
    const double thickness = ramp.values[i] * material.max_thickness();
    const double shift = 2 * std::numbers::pi * material.delta * thickness / material.wavelength();
    EXPECT_NEAR(std::arg(object[i]), -shift, 1e-6);
    EXPECT_NEAR(std::abs(object[i]), std::exp(-0.1 * shift), 1e-6);
  }
  EXPECT_NEAR(std::abs(object[2]), 0.73, 0.005);
  EXPECT_NEAR(material.wavelength(), 0.15498e-9, 1e-14);
}

TEST(PtychoPhysics, EveryStructureIsAThicknessMap) {
  for (auto* structure :
       {siemens_star, line_patterns, gaussian_blobs, dead_leaves, voronoi_grains, thickness_map})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      RandomStream random(seed);
      const Map map = structure(random, 60, 80);
      ASSERT_EQ(map.values.size(), 4800u);
      const auto [low, high] = std::minmax_element(map.values.begin(), map.values.end());
      EXPECT_GE(*low, 0);
      EXPECT_LE(*high, 1);
      EXPECT_GT(*high - *low, 0.15);  // it has structure
    }
}

TEST(PtychoPhysics, ProbesHaveTheirWidthAndUnitIntensity) {
  for (const double width : {5.0, 7.5, 10.0}) {
    const auto focus = zone_plate_probe(64, {width, 0.35, 0.2});
    EXPECT_NEAR(total_intensity(focus), 1, 1e-5);
    EXPECT_NEAR(full_width_at_half_maximum(focus), width, 0.1 * width);
    const auto gaussian = gaussian_probe(64, width);
    EXPECT_NEAR(total_intensity(gaussian), 1, 1e-5);
    EXPECT_NEAR(full_width_at_half_maximum(gaussian), width, 0.1 * width);
    EXPECT_EQ(std::max_element(gaussian.begin(), gaussian.end(),
                               [](auto a, auto b) { return std::norm(a) < std::norm(b); }) -
                  gaussian.begin(),
              32 * 64 + 32);
  }
  EXPECT_THROW(zone_plate_probe(64, {80, 0.3, 0}), Error);
  EXPECT_THROW(zone_plate_probe(64, {8, 1.3, 0}), Error);
}

// The focus of a pupil without stop or defocus is the Airy pattern: first dark ring at 1.1852 times the
// half-maximum diameter from the centre (1.21967 / 1.02899).
TEST(PtychoPhysics, OpenPupilGivesTheAiryPattern) {
  const auto focus = zone_plate_probe(64, {10, 0, 0});
  double darkest = 1e9;
  int radius = 0;
  for (int x = 6; x < 20; ++x) {
    const double value = std::norm(focus[static_cast<std::size_t>(32 * 64 + 32 + x)]);
    if (value < darkest) {
      darkest = value;
      radius = x;
    }
    if (value > 4 * darkest) break;
  }
  EXPECT_NEAR(radius, 11.85, 1);
}

TEST(PtychoPhysics, RasterAndSpiralStayOnTheirGrid) {
  RandomStream random(2);
  const ScanPath exact = raster_scan(random, {64, 3, 0}, 4, 5);
  EXPECT_EQ(exact.positions[7], (Position{exact.positions[0].y + 3, exact.positions[0].x + 6}));
  const ScanPath spiral = spiral_scan(random, {128, 3, 0.3}, 963);
  EXPECT_EQ(spiral.positions.size(), 963u);
  double furthest = 0;
  for (const Position at : spiral.positions) {
    EXPECT_TRUE(at.y >= 0 && at.x >= 0 && at.y + 128 <= spiral.height && at.x + 128 <= spiral.width);
    const double centre = (spiral.width - 128) / 2.0;
    furthest = std::max(furthest, std::hypot(at.y - centre, at.x - centre));
  }
  // 963 points of 9 px^2 each fill a disc of radius sqrt(963 * 9 / pi) = 52.5 px.
  EXPECT_NEAR(furthest, 52.5, 2.5);
  EXPECT_THROW(raster_scan(random, {64, 3, 0}, 0, 5), Error);
  EXPECT_THROW(spiral_scan(random, {64, -3, 0}, 5), Error);
}

struct Moments {
  double mean, variance;
};

Moments counted(float intensity, double threshold) {
  RandomStream random(3);
  const std::vector<float> means(20000, intensity);
  std::vector<float> counts(means.size());
  count_photons(random, means, {{}, threshold}, counts);
  double total = 0, squares = 0;
  for (const float count : counts) {
    total += count;
    squares += double{count} * count;
  }
  const double mean = total / static_cast<double>(counts.size());
  return {mean, squares / static_cast<double>(counts.size()) - mean * mean};
}

// E[k; k >= t] and Var of a Poisson count that is written as 0 below t.
Moments expected_counts(double mean, int threshold) {
  double probability = std::exp(-mean), first = 0, second = 0;
  for (int k = 0; k < 400; ++k) {
    if (k >= threshold) {
      first += k * probability;
      second += double{1} * k * k * probability;
    }
    probability *= mean / (k + 1);
  }
  return {first, second - first * first};
}

TEST(PtychoPhysics, CountsArePoissonAboveTheThreshold) {
  for (const float mean : {0.05f, 0.7f, 2.5f, 9.0f, 11.0f, 60.0f})
    for (const int threshold : {0, 1, 3}) {
      const Moments found = counted(mean, threshold), expected = expected_counts(mean, threshold);
      const double error = std::sqrt(expected.variance / 20000);
      EXPECT_NEAR(found.mean, expected.mean, 4 * error + 1e-9) << mean << " threshold " << threshold;
      EXPECT_NEAR(found.variance, expected.variance, 0.08 * expected.variance + 0.01);
    }
  EXPECT_EQ(counted(0, 0).mean, 0);
}

TEST(PtychoPhysics, DeadPixelsNeverCount) {
  RandomStream random(4);
  const Detector detector = make_detector(random, 100, 0.1, 3);
  const auto dead = std::count(detector.dead.begin(), detector.dead.end(), 1);
  EXPECT_NEAR(static_cast<double>(dead), 1000, 4 * 30);
  const std::vector<float> bright(10000, 1000);
  std::vector<float> counts(10000);
  count_photons(random, bright, detector, counts);
  for (std::size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(counts[i] == 0, detector.dead[i] == 1);
}

}  // namespace
}  // namespace superstep::data
