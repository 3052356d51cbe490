// Overlapping spots are parted where they should be, and nowhere else.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "superstep/peaks/image/watershed.h"
#include "superstep/physics/imaging/components.h"
#include "tests/peaks/pictures.h"

namespace superstep::peaks {
namespace {

struct Parted {
  int regions = 0;
  Runs runs;
  std::vector<std::int32_t> component;
  int at(int row, int column) const { return label_at(runs.runs, row, column); }
};

Parted part(const Picture& picture, double threshold, const Parting& parting) {
  const Correction plain = picture.plain();
  Parted parted;
  find_runs(picture.frame(plain), threshold, parted.runs);
  const int components = label_runs(parted.runs.runs);
  Watershed watershed;
  parted.regions = watershed.part(parted.runs, components, parting, parted.component);
  return parted;
}

TEST(PeakWatershed, TwoEqualSpotsDivideInTheMiddle) {
  Picture picture(21, 30);
  picture.add_gaussian(10, 10, 1000, 1.8);
  picture.add_gaussian(10, 17, 1000, 1.8);
  const Parted parted = part(picture, 5, {});
  ASSERT_EQ(parted.regions, 2);
  EXPECT_EQ(parted.component, (std::vector<std::int32_t>{0, 0}));
  for (const PixelRun& run : parted.runs.runs)
    for (int column = run.begin; column < run.end; ++column) {
      EXPECT_EQ(run.label, parted.at(10, column <= 13 ? 10 : 17)) << run.row << ", " << column;
      EXPECT_EQ(parted.runs.values[run.first + static_cast<std::uint32_t>(column - run.begin)],
                picture.at(run.row, column));
    }
}

TEST(PeakWatershed, AShoulderOrNoiseIsNoSpotOfItsOwn) {
  Picture picture(30, 30, 2);
  picture.add_gaussian(15, 15, 3000, 2.0);
  EXPECT_EQ(part(picture, 8, {}).regions, 1);
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Picture noisy = picture;
    noisy.count_photons(seed);
    const Parted parted = part(noisy, 20, {});
    // Pixels at the rim that are alone above the threshold are components, not parts of one.
    EXPECT_EQ(std::set(parted.component.begin(), parted.component.end()).size(), parted.component.size())
        << seed;
  }
  // A spot that is near another one and too close to have a valley is one with it.
  picture.add_gaussian(15, 17, 3000, 2.0);
  EXPECT_EQ(part(picture, 8, {}).regions, 1);
}

TEST(PeakWatershed, TheValleyMustBeDeepEnough) {
  Picture picture(60, 70);
  picture.add_gaussian(10, 10, 3000, 2.0);
  picture.add_gaussian(10, 15, 3000, 2.0);  // the saddle is at 0.88 of the maxima
  EXPECT_EQ(part(picture, 5, {.valley = 0.05}).regions, 2);
  EXPECT_EQ(part(picture, 5, {.valley = 0.3}).regions, 1);
  Picture faint(60, 70);  // the same in so few photons that the valley may be by chance
  faint.add_gaussian(10, 10, 20, 2.0);
  faint.add_gaussian(10, 15, 20, 2.0);
  EXPECT_EQ(part(faint, 1, {.valley = 0.05}).regions, 1);
}

TEST(PeakWatershed, ASaturatedTopIsOneSpot) {
  Picture picture(70, 70);
  picture.add_gaussian(15, 15, 5000, 3.0);
  for (float& value : picture.values) value = std::min(value, 1000.0f);
  EXPECT_EQ(part(picture, 5, {}).regions, 1);
}

// The slow way: a maximum parts where the highest level at which its component holds a higher one is low
// enough.
int regions_by_levels(const Picture& picture, double threshold, const Parting& parting) {
  std::set<float> levels;
  for (const float value : picture.values)
    if (double{value} > threshold) levels.insert(value);
  std::vector<float> shown(picture.values.size());
  std::vector<std::int32_t> labels(shown.size()), stack;
  std::vector<bool> settled(shown.size());
  int regions = 0;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    for (std::size_t i = 0; i < shown.size(); ++i) shown[i] = picture.values[i] >= *level ? 1.0f : 0.0f;
    const int count = data::label_components<float>(shown, picture.width, picture.height, labels, stack);
    std::vector<std::vector<std::size_t>> maxima(static_cast<std::size_t>(count) + 1);
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const int width = picture.width, row = int(i) / width, column = int(i) % width;
      bool top = labels[i] > 0 && !settled[i];
      for (int r = std::max(0, row - 1); top && r <= std::min(picture.height - 1, row + 1); ++r)
        for (int c = std::max(0, column - 1); c <= std::min(width - 1, column + 1); ++c)
          top = top && picture.values[static_cast<std::size_t>(r * width + c)] <= picture.values[i];
      if (top) maxima[static_cast<std::size_t>(labels[i])].push_back(i);
    }
    for (auto& tops : maxima) {
      if (tops.size() < 2) continue;
      const auto highest =
          *std::ranges::max_element(tops, {}, [&](std::size_t i) { return picture.values[i]; });
      for (const std::size_t top : tops) {
        if (top == highest) continue;
        settled[top] = true;
        regions += parting.parts(double{picture.values[top]}, double{*level});
      }
    }
  }
  for (std::size_t i = 0; i < shown.size(); ++i)
    shown[i] = double{picture.values[i]} > threshold ? 1.0f : 0.0f;
  return regions + data::label_components<float>(shown, picture.width, picture.height, labels, stack);
}

TEST(PeakWatershed, PartsAsManyAsLevelsSay) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    Picture picture(40, 44);
    RandomStream random(seed, 5);
    for (int i = 0; i < 9; ++i)
      picture.add_gaussian(random.uniform(3, 36), random.uniform(3, 40), random.uniform(200, 3000),
                           random.uniform(0.9, 2));
    for (float& value : picture.values)
      value += static_cast<float>(random.uniform(0, 20));  // no two are equal
    const Parting parting{.valley = 0.1};
    EXPECT_EQ(part(picture, 60, parting).regions, regions_by_levels(picture, 60, parting)) << "seed " << seed;
  }
}

TEST(PeakWatershed, RegionsAreConnectedAndCoverTheirComponent) {
  Picture picture(120, 120);
  RandomStream random(9);
  for (int i = 0; i < 25; ++i)
    picture.add_gaussian(random.uniform(5, 55), random.uniform(5, 55), random.uniform(500, 3000), 1.5);
  const Parted parted = part(picture, 20, {});
  ASSERT_GT(parted.regions, 8);
  std::size_t pixels = 0;
  for (int region = 0; region < parted.regions; ++region) {
    std::vector<float> own(picture.values.size());
    for (const PixelRun& run : parted.runs.runs)
      if (run.label == region)
        for (int c = run.begin; c < run.end; ++c)
          own[static_cast<std::size_t>(run.row * 120 + c)] = 1, ++pixels;
    std::vector<std::int32_t> labels(own.size()), stack;
    EXPECT_EQ(data::label_components<float>(own, 120, 120, labels, stack), 1) << "region " << region;
  }
  EXPECT_EQ(pixels, parted.runs.values.size());
}

}  // namespace
}  // namespace superstep::peaks
