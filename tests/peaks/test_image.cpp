// Level, threshold, scan and connected components, each beside a slow way to say the same.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "superstep/peaks/image/level.h"
#include "superstep/peaks/image/runs.h"
#include "superstep/physics/imaging/components.h"
#include "tests/expect_error.h"
#include "tests/peaks/pictures.h"

namespace superstep::peaks {
namespace {

TEST(PeakLevel, IsTheMeanAndTheWidthOfCountedPhotons) {
  for (const double mean : {0.4, 3.0, 40.0, 900.0}) {
    std::vector<std::uint16_t> counts(300 * 400);
    RandomStream random(7);
    for (auto& count : counts) count = static_cast<std::uint16_t>(random.poisson(mean));
    const Correction plain{.height = 300, .width = 400};
    const Level level =
        level_of({ElementType::u16, reinterpret_cast<const std::byte*>(counts.data()), plain});
    EXPECT_NEAR(level.background, mean, 0.03 * mean + 0.35) << mean;
    EXPECT_NEAR(level.sigma, std::sqrt(mean), 0.1 * std::sqrt(mean) + 0.12) << mean;
  }
}

// A tenth of the pixels in spots moves a mean by a thousand counts, and neither of these.
TEST(PeakLevel, SpotsHardlyMoveIt) {
  Picture without(200, 200, 50), with(200, 200, 50);
  without.count_photons(3);
  with.count_photons(3);
  for (std::size_t i = 0; i < with.values.size(); i += 11) with.values[i] += 10000;
  const Correction plain = with.plain();
  const Level a = level_of(without.frame(plain)), b = level_of(with.frame(plain));
  EXPECT_NEAR(a.background, b.background, 0.15 * a.sigma);
  EXPECT_NEAR(a.sigma, b.sigma, 0.15 * a.sigma);
}

TEST(PeakLevel, AFrameWithoutDataIsRefused) {
  Picture picture(8, 8, NAN);
  const Correction plain = picture.plain();
  expect_error(ErrorCode::bad_file, {"no pixel of the frame has data"},
               [&] { level_of(picture.frame(plain)); });
}

TEST(PeakThreshold, IsCountsOrSigma) {
  EXPECT_DOUBLE_EQ(threshold_from_text("100").above({5, 2}), 100);
  EXPECT_DOUBLE_EQ(threshold_from_text("8sigma").above({5, 2}), 21);
  EXPECT_EQ(to_text(threshold_from_text("2.5sigma")), "2.5sigma");
  for (const char* text : {"", "sigma", "nan", "-1sigma", "0sigma", "5 sigma", "inf", "12x"})
    expect_error(ErrorCode::invalid_argument, {"--threshold"}, [&] { threshold_from_text(text); });
}

// Every type of pixel, corrected in every way, thresholds on and between values: pixel by pixel.
template <class T>
void expect_runs_of(ElementType type, int width, const Correction& correction, double threshold) {
  std::vector<T> pixels(correction.pixels(), T{3});
  RandomStream random(11, static_cast<std::uint64_t>(width));
  for (int i = 0; i < 60; ++i) {
    const auto at = random.below(pixels.size());
    pixels[at] = i % 7 == 0 ? std::numeric_limits<T>::max() : static_cast<T>(random.below(100));
    if (i % 3 == 0 && at + 3 < pixels.size()) pixels[at + 1] = pixels[at + 2] = static_cast<T>(90);
  }
  const Frame frame(type, reinterpret_cast<const std::byte*>(pixels.data()), correction);
  std::vector<float> values(pixels.size());
  frame.values(0, values);
  Runs runs;
  find_runs(frame, threshold, runs);
  std::vector<bool> above(pixels.size());
  for (const PixelRun& run : runs.runs)
    for (int column = run.begin; column < run.end; ++column) {
      const auto at = static_cast<std::size_t>(run.row * width + column);
      above[at] = true;
      EXPECT_EQ(runs.values[run.first + static_cast<std::uint32_t>(column - run.begin)], values[at]);
    }
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(above[i], double{values[i]} > threshold) << name_of(type) << " " << threshold << " pixel " << i;
}

void expect_all_types(int width, const Correction& correction, double threshold) {
  expect_runs_of<std::uint8_t>(ElementType::u8, width, correction, threshold);
  expect_runs_of<std::int8_t>(ElementType::i8, width, correction, threshold);
  expect_runs_of<std::uint16_t>(ElementType::u16, width, correction, threshold);
  expect_runs_of<std::int16_t>(ElementType::i16, width, correction, threshold);
  expect_runs_of<std::uint32_t>(ElementType::u32, width, correction, threshold);
  expect_runs_of<std::int32_t>(ElementType::i32, width, correction, threshold);
  expect_runs_of<float>(ElementType::f32, width, correction, threshold);
  expect_runs_of<double>(ElementType::f64, width, correction, threshold);
}

TEST(PeakScan, TakesWhatIsAboveTheThreshold) {
  for (const int width : {1, 63, 64, 65, 200})
    for (const double threshold : {3.0, 3.5, 49.99999, 50.0, 126.0, 70000.0}) {
      Correction correction{.height = 40, .width = width};
      expect_all_types(width, correction, threshold);
      RandomStream random(5);
      for (std::size_t i = 0; i < correction.pixels(); ++i)
        correction.bad.push_back(random.uniform() < 0.1),
            correction.dark.push_back(float(random.uniform(0, 2)));
      expect_all_types(width, correction, threshold);
      for (std::size_t i = 0; i < correction.pixels(); ++i)
        correction.gain.push_back(float(random.uniform(0.9, 1.1)));
      expect_all_types(width, correction, threshold + 1);
      correction.dark.clear();
      expect_all_types(width, correction, threshold + 1);
    }
}

TEST(PeakScan, AThresholdInTheBackgroundIsRefused) {
  const Picture picture(100, 100, 5);
  const Correction plain = picture.plain();
  Runs runs;
  expect_error(ErrorCode::invalid_argument, {"a quarter", "above 4", "--threshold"},
               [&] { find_runs(picture.frame(plain), 4, runs); });
  const std::vector<std::uint16_t> counts(10000);
  expect_error(ErrorCode::invalid_argument, {"a quarter"}, [&] {
    find_runs({ElementType::u16, reinterpret_cast<const std::byte*>(counts.data()), plain}, -1, runs);
  });
  find_runs(picture.frame(plain), 5, runs);
  EXPECT_TRUE(runs.runs.empty());
}

// Shapes that make labels meet late: combs, spirals, checkers, noise of every density.
void draw_spiral(Picture& picture, int top, int left, int size) {
  int row = top, column = left, steps = size, down = 0, right = 1;
  while (steps > 0) {
    for (int i = 0; i < steps; ++i) picture.at(row, column) = 1, row += down, column += right;
    std::swap(down, right);
    right = -right;
    if (right != 0 || down != 0) steps -= 2;
    if (row < top || column < left) break;
  }
}

Picture shapes(std::uint64_t seed) {
  Picture picture(150, 260);
  RandomStream random(seed);
  const double density = random.uniform(0.05, 0.9);
  for (int r = 20; r < 70; ++r)
    for (int c = 100; c < 160; ++c) picture.at(r, c) = random.uniform() < density;
  for (int r = 90; r < 130; ++r)
    for (int c = 10; c < 60; ++c) picture.at(r, c) = c % 3 == 0 || r == (seed % 2 ? 90 : 129);
  for (int r = 90; r < 120; ++r)
    for (int c = 100; c < 130; ++c) picture.at(r, c) = (r + c) % 2 == 0;
  draw_spiral(picture, 5, 180, 30);
  for (int i = 0; i < 200; ++i) picture.at(int(random.below(150)), int(random.below(260))) = 1;
  return picture;
}

TEST(PeakComponents, AreThoseOfAFloodFill) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Picture picture = shapes(seed);
    const Correction plain = picture.plain();
    Runs runs;
    find_runs(picture.frame(plain), 0.5, runs);
    const int count = label_runs(runs.runs);
    std::vector<std::int32_t> expected(picture.values.size()), stack;
    ASSERT_EQ(count,
              data::label_components<float>(picture.values, picture.width, picture.height, expected, stack));
    for (int row = 0; row < picture.height; ++row)
      for (int column = 0; column < picture.width; ++column)
        ASSERT_EQ(label_at(runs.runs, row, column) + 1,
                  expected[static_cast<std::size_t>(row * picture.width + column)])
            << "seed " << seed << " at " << row << ", " << column;
  }
}

}  // namespace
}  // namespace superstep::peaks
