// Frames of a turning sample, and pixels that are dead.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/xray/bragg_frames.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

BraggFrameSettings turning() {
  return {.height = 120, .width = 130, .peaks_per_frame = 3, .detector = {}, .rocking = 1.5, .dead = 0.01};
}

TEST(BraggTurning, FilesAreTheSameWhateverTheThreads) {
  const ScratchFolder folder;
  ThreadPool one(1), three(3);
  const BraggFrameGenerator generator(turning());
  generator.write({folder / "one.h5", 5, 9, &one});
  generator.write({folder / "three.h5", 5, 9, &three});
  generator.write({folder / "other.h5", 6, 9, &three});
  EXPECT_EQ(read_text_file(folder / "one.h5"), read_text_file(folder / "three.h5"));
  const auto rows = [&](const char* name) {
    return Hdf5File(folder / name).read("spot_row", ElementType::f64);
  };
  EXPECT_NE(rows("one.h5").at(0), rows("other.h5").at(0));
}

// Every reflection has the height of its Gaussian in each frame near it, and is in no other.
TEST(BraggTurning, PeaksFollowTheirRockingCurve) {
  const BraggFrameGenerator generator(turning());
  constexpr std::uint64_t frames = 24;
  std::map<double, BraggReflection> by_row;  // no two have the same
  for (std::uint64_t i = 0; i < frames + 8; ++i)
    for (const BraggReflection& each : generator.reflections(5, i)) {
      by_row[each.peak.row] = each;
      EXPECT_LE(std::abs(each.frame - static_cast<double>(i)), 0.5);
    }
  std::map<double, int> seen;
  for (std::uint64_t i = 0; i < frames; ++i)
    for (const BraggTableRow& row : generator.frame(5, i).table) {
      const BraggReflection& whole = by_row.at(row.peak.row);
      const double off = (static_cast<double>(i) - whole.frame) / 1.5;
      EXPECT_NEAR(row.peak.amplitude, whole.peak.amplitude * std::exp(-0.5 * off * off), 1e-9);
      EXPECT_EQ(row.peak.column, whole.peak.column);
      ++seen[row.peak.row];
    }
  for (const auto& [row, whole] : by_row)
    if (whole.frame > 7 && whole.frame < frames - 8) {  // all of its frames are among these
      // Half a count is left of it where the exponent is log(2 amplitude).
      const double reach = 1.5 * std::sqrt(2 * std::log(2 * whole.peak.amplitude));
      EXPECT_NEAR(seen[row], 2 * reach, 1.01) << whole.frame;
    }
}

TEST(BraggTurning, DeadPixelsReadZeroInAllFramesAndAreInTheMask) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  BraggFrameSettings settings = turning();
  settings.ranges.background_low = settings.ranges.background_high = 50;  // nothing else is 0
  BraggFrameGenerator(settings).write({folder / "scan.h5", 5, 3, &pool});
  const Hdf5File file(folder / "scan.h5");
  const Tensor frames = file.read("frames", ElementType::i64), mask = file.read("mask", ElementType::i64);
  std::int64_t dead = 0;
  for (std::int64_t i = 0; i < mask.element_count(); ++i) {
    dead += mask.at(i) != 0;
    for (std::int64_t f = 0; f < 3; ++f)
      ASSERT_EQ(frames.at(f * mask.element_count() + i) == 0, mask.at(i) != 0);
  }
  const double expected = 0.01 * static_cast<double>(mask.element_count());
  EXPECT_NEAR(static_cast<double>(dead), expected, 4 * std::sqrt(expected));
}

// What is not asked for changes no bit, and is not in the file.
TEST(BraggTurning, OtherFramesAreAsTheyWere) {
  BraggFrameSettings still = turning();
  still.rocking = still.dead = 0;
  const BraggFrameGenerator generator(still);
  EXPECT_TRUE(generator.reflections(5, 3).empty());
  EXPECT_FALSE(generator.parameters().contains("rocking"));
  BraggFrameSettings dead = still;
  dead.dead = 0.01;
  const auto a = generator.frame(5, 3).counts, b = BraggFrameGenerator(dead).frame(5, 3).counts;
  const auto gone = BraggFrameGenerator(dead).dead_pixels(5);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(b[i], gone[i] ? 0 : a[i]);
}

}  // namespace
}  // namespace superstep::data
