// Spots of a frame: what they sum to, their patches, and how sure their places are.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "superstep/base/statistics.h"
#include "superstep/baseline/xray/bragg_position.h"
#include "superstep/peaks/spot/frame_spots.h"
#include "tests/peaks/pictures.h"

namespace superstep::peaks {
namespace {

FrameSpots find(const Picture& picture, const FindSettings& settings, const Correction& correction) {
  return SpotFinder(settings).find(picture.frame(correction), 0);
}
FrameSpots find(const Picture& picture, const FindSettings& settings) {
  return find(picture, settings, picture.plain());
}
std::vector<float> patch_of(const FrameSpots& found, std::size_t spot, int size = 11) {
  const auto area = static_cast<std::ptrdiff_t>(size * size);
  const auto begin = found.patches.begin() + static_cast<std::ptrdiff_t>(spot) * area;
  return {begin, begin + area};
}

TEST(PeakSpots, AGaussianHasItsCentroidAtItsCenter) {
  Picture picture(60, 80, 7);
  picture.add_gaussian(31, 42, 800, 1.1);
  const FrameSpots found = find(picture, {.threshold = {9, false}});
  ASSERT_EQ(found.spots.size(), 1u);
  const FoundSpot& spot = found.spots[0];
  EXPECT_EQ(spot.row, 31);
  EXPECT_EQ(spot.column, 42);
  EXPECT_FLOAT_EQ(spot.maximum, 800);
  EXPECT_EQ(spot.flags, 0);
  EXPECT_DOUBLE_EQ(found.level.background, 7);
  // All of it but what is below two counts above the background.
  EXPECT_NEAR(spot.intensity, 800 * 2 * std::numbers::pi * 1.1 * 1.1, 60);
  const baseline::PeakPosition place = baseline::centroid(patch_of(found, 0), 11);
  EXPECT_NEAR(place.column, 5, 1e-5);
  EXPECT_NEAR(place.row, 5, 1e-5);
}

TEST(PeakSpots, PatchesLackOtherSpots) {
  Picture picture(60, 80, 7);
  picture.add_gaussian(30, 30, 800, 1.0);
  picture.add_gaussian(30, 36, 500, 1.0);
  const FrameSpots found = find(picture, {.threshold = {10, false}});
  ASSERT_EQ(found.spots.size(), 2u);
  EXPECT_EQ(found.spots[0].column, 30);
  const std::vector<float> patch = patch_of(found, 0);
  for (int r = 0; r < 11; ++r)
    for (int c = 0; c < 11; ++c) {
      const int row = 25 + r, column = 25 + c;
      const int label = label_at(found.runs, row, column);
      EXPECT_FLOAT_EQ(patch[static_cast<std::size_t>(r * 11 + c)], label == 1 ? 7 : picture.at(row, column))
          << row << ", " << column;
    }
  const FrameSpots clean = find(picture, {.threshold = {10, false}, .clean = true});
  const std::vector<float> own = patch_of(clean, 0);
  for (int r = 0; r < 11; ++r)
    for (int c = 0; c < 11; ++c)
      EXPECT_FLOAT_EQ(own[static_cast<std::size_t>(r * 11 + c)],
                      label_at(clean.runs, 25 + r, 25 + c) == 0 ? picture.at(25 + r, 25 + c) : 0);
}

TEST(PeakSpots, PartedOnesAreFlagged) {
  Picture picture(40, 60, 1);
  picture.add_gaussian(20, 20, 2000, 1.5);
  picture.add_gaussian(20, 26, 2000, 1.5);
  picture.add_gaussian(20, 45, 2000, 1.5);
  const FrameSpots found = find(picture, {.threshold = {8, false}});
  ASSERT_EQ(found.spots.size(), 3u);
  EXPECT_EQ(found.spots[0].flags, overlaps);
  EXPECT_EQ(found.spots[1].flags, overlaps);
  EXPECT_EQ(found.spots[2].flags, 0);
  EXPECT_EQ(find(picture, {.threshold = {8, false}, .part = false}).spots.size(), 2u);
}

TEST(PeakSpots, EdgesAndPixelsWithoutDataAreTold) {
  Picture picture(50, 50, 4);
  picture.add_gaussian(2, 25, 900, 1.2);
  picture.add_gaussian(25, 25, 900, 1.2);
  picture.add_gaussian(47.6, 48.3, 900, 1.2);
  picture.at(25, 26) = NAN;
  Correction correction = picture.plain();
  correction.bad.assign(correction.pixels(), 0);
  correction.bad[24 * 50 + 26] = 1;
  const FrameSpots found = find(picture, {.threshold = {10, false}}, correction);
  ASSERT_EQ(found.spots.size(), 3u);
  EXPECT_EQ(found.spots[0].flags, at_edge);
  EXPECT_EQ(found.spots[1].flags, has_gaps);
  EXPECT_EQ(found.spots[2].flags, at_edge);
  for (int r = 0; r < 3; ++r)  // rows -3 to -1 of the frame
    for (int c = 0; c < 11; ++c) EXPECT_EQ(patch_of(found, 0)[static_cast<std::size_t>(r * 11 + c)], 4);
  EXPECT_FLOAT_EQ(patch_of(found, 0)[5 * 11 + 5], 904);
  // The two gaps are filled from the six or seven pixels around them, not from one another.
  double sum = 0;
  int count = 0;
  for (int r = 24; r <= 26; ++r)
    for (int c = 25; c <= 27; ++c)
      if (c != 26 || r == 26) sum += double{picture.at(r, c)}, ++count;
  ASSERT_EQ(count, 7);
  EXPECT_NEAR(patch_of(found, 1)[5 * 11 + 6], sum / 7, 1e-3);
}

TEST(PeakSpots, FewPixelsAreNoSpot) {
  Picture picture(30, 30);
  picture.at(5, 5) = picture.at(5, 6) = 100;
  picture.at(20, 20) = picture.at(20, 21) = picture.at(21, 21) = 100;
  const FrameSpots found = find(picture, {.threshold = {10, false}});
  ASSERT_EQ(found.spots.size(), 1u);
  EXPECT_EQ(found.spots[0].pixels, 3);
  EXPECT_EQ(label_at(found.runs, 5, 5), -1);
  EXPECT_EQ(find(picture, {.threshold = {10, false}, .least_pixels = 2}).spots.size(), 2u);
}

// The tail of a bright peak with Lorentzian wings crosses the threshold far out, in noise.
TEST(PeakSpots, TheShoreOfABrightSpotIsNoSpot) {
  Picture picture(190, 190, 3);
  for (int r = 0; r < 190; ++r)
    for (int c = 0; c < 190; ++c)
      picture.at(r, c) += 5000.0f / (1 + ((r - 80) * (r - 80) + (c - 80) * (c - 80)) / 6.0f);
  picture.add_gaussian(80, 125, 60, 1.3);  // a faint one on that slope, which stands out
  picture.count_photons(8);
  const FindSettings settings{.threshold = {20, false}};
  const FrameSpots found = find(picture, settings);
  ASSERT_EQ(found.spots.size(), 2u);
  EXPECT_NEAR(found.spots[1].column, 125, 1);
  FindSettings without = settings;
  without.contrast = 0;
  EXPECT_GT(find(picture, without).spots.size(), 10u);
}

// The centroid over the spot's own pixels, drawn 400 times: its spread is what is said of one.
TEST(PeakSpots, TheSpreadOfCentroidsIsWhatIsSaidOfEach) {
  Picture expected(31, 31);
  expected.add_gaussian(15.2, 14.9, 400, 1.6);
  std::vector<double> rows, sigmas;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Picture picture = expected;
    picture.count_photons(seed);
    const FrameSpots found = find(picture, {.threshold = {0.5, false}, .part = false});
    ASSERT_GE(found.spots.size(), 1u);
    double weight = 0, sum = 0;
    for (const PixelRun& run : found.runs)
      if (run.label == 0)
        for (int c = run.begin; c < run.end; ++c)
          weight += picture.at(run.row, c), sum += picture.at(run.row, c) * run.row;
    rows.push_back(sum / weight);
    sigmas.push_back(found.spots[0].row_sigma);
  }
  double spread = 0;
  for (const double row : rows) spread += (row - mean(rows)) * (row - mean(rows));
  spread = std::sqrt(spread / static_cast<double>(rows.size() - 1));
  EXPECT_NEAR(mean(sigmas) / spread, 1, 0.12);  // 400 draws know a spread to 3.5 %
  EXPECT_NEAR(mean(sigmas), 1.6 / std::sqrt(400 * 2 * std::numbers::pi * 1.6 * 1.6), 0.001);
}

}  // namespace
}  // namespace superstep::peaks
