// Plots as pixels: what is drawn lies where the axes say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/page/raster.h"
#include "tests/expect_error.h"

namespace superstep::page {
namespace {

// Pixels of the first series' blue: less red than green, less green than blue, and far from grey.
std::vector<std::pair<int, int>> blue_pixels(const Image& image) {
  std::vector<std::pair<int, int>> found;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const std::uint8_t* rgb = &image.rgb[static_cast<std::size_t>(3 * (y * image.width + x))];
      if (rgb[2] > rgb[0] + 90) found.emplace_back(x, y);
    }
  return found;
}

Plot line_from(double x0, double y0, double x1, double y1) {
  return {.series = {{.label = "", .x = {x0, x1}, .y = {y0, y1}}}};
}

TEST(Raster, IsOfTheSizeThatWasAskedFor) {
  const Image image = to_image(line_from(0, 0, 1, 1), 200, 120);
  EXPECT_EQ(image.width, 200);
  EXPECT_EQ(image.height, 120);
  EXPECT_EQ(image.rgb.size(), 200U * 120U * 3U);
}

// A rising line goes from the lower left to the upper right, a falling one the other way: columns in between
// have it at the height in between.
TEST(Raster, DrawsALineAlongItsValues) {
  for (const bool rising : {true, false}) {
    const auto blue = blue_pixels(to_image(line_from(0, rising ? 0 : 1, 1, rising ? 1 : 0), 300, 200));
    ASSERT_GT(blue.size(), 200U);
    const auto [left, right] = std::ranges::minmax_element(blue, {}, &std::pair<int, int>::first);
    const int first = left->second, last = right->second;
    EXPECT_EQ(rising, first > last);
    for (const auto& [x, y] : blue) {
      const double share = static_cast<double>(x - left->first) / (right->first - left->first);
      EXPECT_NEAR(y, first + share * (last - first), 3) << "column " << x;
    }
  }
}

// A hundredth and a hundred are as far from one.
TEST(Raster, KnowsLogarithmicAxes) {
  Plot plot{.log_y = true, .series = {{.label = "", .x = {0, 1, 2}, .y = {0.01, 1, 100}}}};
  const auto blue = blue_pixels(to_image(plot, 300, 200));
  const auto [low, high] = std::ranges::minmax_element(blue, {}, &std::pair<int, int>::second);
  const auto [left, right] = std::ranges::minmax_element(blue, {}, &std::pair<int, int>::first);
  const int middle = (left->first + right->first) / 2;
  for (const auto& [x, y] : blue)
    if (std::abs(x - middle) <= 1) {
      EXPECT_NEAR(y, (low->second + high->second) / 2, 4);
    }
}

// Values that are no numbers leave a gap; a band is fainter than its line.
TEST(Raster, LeavesOutWhatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Plot plot{.series = {{.label = "", .x = {0, 1, 2, 3}, .y = {1, 1, nan, 2}}}};
  const auto gap = blue_pixels(to_image(plot, 300, 200));
  plot.series[0].y[2] = 1.5;
  EXPECT_LT(gap.size() * 2, blue_pixels(to_image(plot, 300, 200)).size());
}

TEST(Raster, RefusesSizesAndLengthsThatMakeNoPicture) {
  for (const auto& [width, height] : {std::pair{99, 400}, {640, 79}, {10001, 400}, {640, 10001}})
    expect_error(ErrorCode::invalid_argument, {"a plot cannot have"},
                 [&] { to_image(line_from(0, 0, 1, 1), width, height); });
  Plot plot = line_from(0, 0, 1, 1);
  plot.series[0].y.push_back(2);
  EXPECT_THROW(to_image(plot), Error);
}

}  // namespace
}  // namespace superstep::page
