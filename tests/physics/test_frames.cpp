#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/physics/xray/frames.h"
#include "superstep/physics/xray/sobel_tracks.h"

namespace superstep::data {
namespace {

std::unique_ptr<Generator> make(const GeneratorEntry& entry, const std::vector<std::string>& assignments) {
  return entry.make(Options(entry.options, assignments));
}

void expect_same_bits_on_threads(const Generator& generator) {
  ThreadPool one(1), three(3);
  const auto expected = generate_in_memory(generator, 7, 3, 9, one),
             found = generate_in_memory(generator, 7, 3, 9, three);
  for (std::size_t f = 0; f < expected.size(); ++f)
    EXPECT_EQ(std::memcmp(expected[f].bytes(), found[f].bytes(), expected[f].byte_count()), 0)
        << generator.fields()[f].name;
}

TEST(Frames, SameBitsOnAnyNumberOfThreads) {
  expect_same_bits_on_threads(*make(pca_compress_generator(), {"window=32", "points=5", "width=50..60"}));
  expect_same_bits_on_threads(
      *make(pca_compress_generator(), {"window=32", "source=speckle", "width=50..60"}));
  expect_same_bits_on_threads(*make(sobel_generator(), {"side=50", "tracks=5"}));
}

TEST(Frames, DiffractionFramesArePtychographyPatterns) {
  const std::vector<std::string> settings{"window=32", "points=5", "width=50..60"};
  const auto frames = make(pca_compress_generator(), settings),
             scans = make(ptychonn_128_generator(), settings);
  ThreadPool pool(2);
  const auto a = generate_in_memory(*frames, 4, 0, 12, pool), b = generate_in_memory(*scans, 4, 0, 12, pool);
  EXPECT_EQ(std::memcmp(a[0].bytes(), b[0].bytes(), a[0].byte_count()), 0);
  EXPECT_EQ(a[2].at(11), 2);  // the third scan
}

// Fully developed speckle is exponentially distributed: its contrast is 1, and P(I > 2 mean) = exp(-2).
TEST(Frames, SpeckleIsExponential) {
  double sum = 0, squares = 0, bright = 0, count = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomStream random(seed);
    const auto intensity = speckle_intensity(random, 64, 4, 4096);
    EXPECT_NEAR(std::accumulate(intensity.begin(), intensity.end(), 0.0), 4096, 0.05);
    for (const float value : intensity) {
      sum += value;
      squares += double{value} * value;
      bright += value > 2;
      ++count;
    }
  }
  const double mean = sum / count;
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean) / mean, 1, 0.05);
  EXPECT_NEAR(bright / count, std::exp(-2), 0.01);
}

// A Moyal variate is its mode plus a width times -ln z^2: the median of -ln z^2 is 0.787599.
TEST(Tracks, ChargeIsMoyal) {
  RandomStream random(1);
  std::vector<double> charges;
  for (int i = 0; i < 40000; ++i) charges.push_back(draw_charge(random, 100));
  std::nth_element(charges.begin(), charges.begin() + 20000, charges.end());
  const double expected = 100 * (76 + 1.6 * 76 / 10 * 0.787599);
  EXPECT_NEAR(charges[20000] / expected, 1, 0.01);
  const double mean = std::accumulate(charges.begin(), charges.end(), 0.0) / 40000;
  EXPECT_NEAR(mean / (100 * (76 + 1.6 * 76 / 10 * 1.270363)), 1, 0.01);  // gamma + ln 2
}

TEST(Tracks, ChargeIsKeptAndLiesOnThePath) {
  TrackSettings settings;
  settings.side = 60;
  const Track track{20, 15, 10, 30, 5000};
  const auto frame = collected_charge({track}, settings);
  double total = 0, y = 0, x = 0;
  for (int row = 0; row < 60; ++row)
    for (int column = 0; column < 60; ++column) {
      const double value = frame[static_cast<std::size_t>(row * 60 + column)];
      total += value;
      y += row * value;
      x += column * value;
      const double off_path = std::abs(10.0 * (column - 15) - 30.0 * (row - 20)) / std::hypot(10, 30);
      EXPECT_TRUE(off_path <= 4 || value == 0);
    }
  EXPECT_NEAR(total, 5000, 0.01);
  EXPECT_NEAR(y / total, 25, 1e-3);
  EXPECT_NEAR(x / total, 30, 1e-3);
}

TEST(Tracks, FramesHoldTheirTracks) {
  const auto generator = make(sobel_generator(), {"side=200", "tracks=20", "clustered=0"});
  ThreadPool pool(2);
  const auto fields = generate_in_memory(*generator, 1, 0, 30, pool);
  double tracks = 0, lit = 0, hit = 0, inside = 0;
  for (std::int64_t frame = 0; frame < 30; ++frame) {
    const auto count = static_cast<std::int64_t>(fields[1].at(frame));
    tracks += static_cast<double>(count);
    for (std::int64_t t = 0; t < count; ++t) {
      const std::int64_t at = (frame * TrackGenerator::most_tracks + t) * 5;
      const double y = fields[2].at(at) + 0.5 * fields[2].at(at + 2),
                   x = fields[2].at(at + 1) + 0.5 * fields[2].at(at + 3);
      if (y < 0 || x < 0 || y > 199 || x > 199) continue;
      ++inside;
      hit += fields[0].at(frame * 40000 + std::lround(y) * 200 + std::lround(x)) > 0;
    }
  }
  for (std::int64_t i = 0; i < fields[0].element_count(); ++i) lit += fields[0].at(i) > 0;
  EXPECT_NEAR(tracks / 30, 20, 4 * std::sqrt(20.0 / 30));
  EXPECT_GT(hit / inside, 0.95);                                          // the middle of a track lights up
  EXPECT_LT(lit / static_cast<double>(fields[0].element_count()), 0.05);  // and little else does
}

TEST(Frames, RefusesWhatCannotBe) {
  EXPECT_THROW(make(pca_compress_generator(), {"source=noise"}), Error);
  EXPECT_THROW(make(pca_compress_generator(), {"speckle_size=0.5"}), Error);
  EXPECT_THROW(make(sobel_generator(), {"side=4"}), Error);
  EXPECT_THROW(make(sobel_generator(), {"max_angle=90"}), Error);
}

}  // namespace
}  // namespace superstep::data
