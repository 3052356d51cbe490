// Spots over frames: connected components in three dimensions, and reflections that cross or follow each
// other.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "superstep/peaks/find_peaks.h"
#include "superstep/peaks/spot/link.h"
#include "tests/peaks/pictures.h"

namespace superstep::peaks {
namespace {

constexpr FindSettings every_pixel{
    .threshold = {0.5, false}, .least_pixels = 1, .contrast = 0, .part = false, .patch = 1};

// Frames of a scan, flood-filled as a whole: 8 neighbors in a frame, the same pixel in the next.
std::vector<std::int32_t> flood(const std::vector<Picture>& frames) {
  const int height = frames[0].height, width = frames[0].width, area = height * width;
  std::vector<std::int32_t> labels(frames.size() * static_cast<std::size_t>(area), -1), stack;
  const auto is_set = [&](int f, int r, int c) {
    return f >= 0 && f < int(frames.size()) && r >= 0 && r < height && c >= 0 && c < width &&
           frames[static_cast<std::size_t>(f)].values[static_cast<std::size_t>(r * width + c)] > 0.5f;
  };
  std::int32_t count = 0;
  for (std::int32_t start = 0; start < std::int32_t(labels.size()); ++start) {
    if (labels[static_cast<std::size_t>(start)] >= 0 ||
        !is_set(start / area, start % area / width, start % width))
      continue;
    stack.assign(1, start);
    labels[static_cast<std::size_t>(start)] = count;
    while (!stack.empty()) {
      const int at = stack.back(), f = at / area, r = at % area / width, c = at % width;
      stack.pop_back();
      const auto visit = [&](int frame, int row, int column) {
        if (!is_set(frame, row, column)) return;
        std::int32_t& label = labels[static_cast<std::size_t>(frame * area + row * width + column)];
        if (label < 0) label = count, stack.push_back(frame * area + row * width + column);
      };
      for (int dr = -1; dr <= 1; ++dr)
        for (int dc = -1; dc <= 1; ++dc) visit(f, r + dr, c + dc);
      visit(f - 1, r, c);
      visit(f + 1, r, c);
    }
    ++count;
  }
  return labels;
}

TEST(PeakLinks, WithoutPartingAreComponentsInThreeDimensions) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomStream random(seed);
    std::vector<Picture> frames(7, Picture(30, 33));
    const double density = random.uniform(0.02, 0.24);
    for (Picture& frame : frames)
      for (float& value : frame.values) value = random.uniform() < density;
    SpotLinker linker(false);
    std::vector<FrameSpots> found;
    const Correction plain = frames[0].plain();
    for (std::size_t f = 0; f < frames.size(); ++f) {
      found.push_back(SpotFinder(every_pixel).find(frames[f].frame(plain), std::int64_t(f)));
      linker.add(found.back());
    }
    const std::vector<std::int64_t> reflection = linker.reflections();
    const std::vector<std::int32_t> expected = flood(frames);
    std::map<std::int64_t, std::int32_t> same;
    std::size_t first = 0;
    for (std::size_t f = 0; f < frames.size(); first += found[f++].spots.size())
      for (const PixelRun& run : found[f].runs) {
        const std::int32_t label = expected[f * 990 + static_cast<std::size_t>(run.row * 33 + run.begin)];
        const auto [at, fresh] =
            same.try_emplace(reflection[first + static_cast<std::size_t>(run.label)], label);
        ASSERT_EQ(at->second, label) << "seed " << seed;
      }
    std::set<std::int32_t> labels(expected.begin(), expected.end());
    EXPECT_EQ(same.size(), labels.size() - labels.count(-1)) << "seed " << seed;
  }
}

std::vector<std::int64_t> link(const std::vector<Picture>& frames, bool part) {
  const FindSettings settings{.threshold = {5, false}, .part = part};
  SpotLinker linker(part);
  const Correction plain = frames[0].plain();
  for (std::size_t f = 0; f < frames.size(); ++f)
    linker.add(SpotFinder(settings).find(frames[f].frame(plain), std::int64_t(f)));
  return linker.reflections();
}

// Two that touch all the time: parted, each goes on by itself; not parted they are one.
TEST(PeakLinks, NeighborsGoOnEachByItself) {
  std::vector<Picture> frames(5, Picture(30, 40));
  for (int f = 0; f < 5; ++f) {
    frames[std::size_t(f)].add_gaussian(15, 15, 3000 - 500 * f, 1.6);
    frames[std::size_t(f)].add_gaussian(15, 21, 1000 + 500 * f, 1.6);
  }
  EXPECT_EQ(link(frames, true), (std::vector<std::int64_t>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(link(frames, false), (std::vector<std::int64_t>{0, 0, 0, 0, 0}));
}

TEST(PeakLinks, AnEmptyFrameEndsAReflection) {
  std::vector<Picture> frames(4, Picture(30, 40));
  for (const std::size_t f : {0u, 1u, 3u}) frames[f].add_gaussian(15, 15, 1000, 1.6);
  EXPECT_EQ(link(frames, true), (std::vector<std::int64_t>{0, 0, 1}));
  EXPECT_EQ(link(frames, false), (std::vector<std::int64_t>{0, 0, 1}));
}

TEST(PeakLinks, AreCutWhereTheIntensityHasAValley) {
  using Begins = std::vector<std::size_t>;
  EXPECT_EQ(parts_over_frames({1e4, 5e4, 2e4}, 0.1), (Begins{0}));
  EXPECT_EQ(parts_over_frames({1e4, 5e4, 1e4, 4e4, 9e4, 2e4}, 0.1), (Begins{0, 2}));
  EXPECT_EQ(parts_over_frames({5e4, 1e4, 5e4, 1e4, 5e4}, 0.1), (Begins{0, 1, 3}));
  EXPECT_EQ(parts_over_frames({100, 400, 380, 410, 100}, 0.01), (Begins{0}));   // by chance
  EXPECT_EQ(parts_over_frames({1e4, 4e4, 3.9e4, 4e4, 1e4}, 0.1), (Begins{0}));  // too shallow
  EXPECT_EQ(parts_over_frames({7}, 0.1), (Begins{0}));
}

TEST(PeakReflections, AreMeansByIntensity) {
  std::vector<FoundSpot> spots(2);
  spots[0] = {.frame = 4,
              .maximum = 10,
              .intensity = 100,
              .pixels = 5,
              .flags = at_edge,
              .row_sigma = 0.1,
              .column_sigma = 0.2,
              .found_row = 10,
              .found_column = 20};
  spots[1] = {.frame = 5,
              .maximum = 30,
              .intensity = 300,
              .pixels = 9,
              .flags = has_gaps,
              .row_sigma = 0.05,
              .column_sigma = 0.1,
              .found_row = 10.4,
              .found_column = 20.8};
  const std::int64_t group[] = {0, 0};
  const Reflections all = merged(spots, group, 0.1);
  ASSERT_EQ(all.reflections.size(), 1u);
  const Reflection& one = all.reflections[0];
  EXPECT_DOUBLE_EQ(one.row, 10.3);
  EXPECT_DOUBLE_EQ(one.column, 20.6);
  EXPECT_DOUBLE_EQ(one.frame, 4.75);
  EXPECT_DOUBLE_EQ(one.frame_width, std::sqrt(0.25 * 0.75));
  EXPECT_DOUBLE_EQ(one.intensity, 400);
  EXPECT_EQ(one.pixels, 14);
  EXPECT_EQ(one.flags, at_edge | has_gaps);
  EXPECT_DOUBLE_EQ(one.row_sigma, std::sqrt(100. + 225.) / 400);  // (100 * 0.1)^2 + (300 * 0.05)^2
  EXPECT_DOUBLE_EQ((Omega{-180, 0.25}.at(one.frame)), -180 + 0.25 * 5.25);
}

}  // namespace
}  // namespace superstep::peaks
