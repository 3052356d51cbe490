#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/baseline/baseline.h"
#include "superstep/baseline/xray/sobel.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/xray/sobel_tracks.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

struct Image {
  int height, width;
  std::vector<std::uint16_t> pixels;
  SobelFrame frame() const { return {height, width, pixels}; }
};

template <class F>
Image filled(int height, int width, F value) {
  Image image{height, width, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) image.pixels.push_back(static_cast<std::uint16_t>(value(y, x)));
  return image;
}

// Calls f(index) for every pixel whose window lies inside.
template <class F>
void inside(const Image& image, int size, F f) {
  for (int y = size / 2; y < image.height - size / 2; ++y)
    for (int x = size / 2; x < image.width - size / 2; ++x) f(static_cast<std::size_t>(y * image.width + x));
}

TEST(Sobel, TapsAreTheTextbooks) {
  EXPECT_EQ(smoothing_taps(3), (std::vector<std::int32_t>{1, 2, 1}));
  EXPECT_EQ(derivative_taps(3), (std::vector<std::int32_t>{-1, 0, 1}));
  EXPECT_EQ(smoothing_taps(5), (std::vector<std::int32_t>{1, 4, 6, 4, 1}));
  EXPECT_EQ(derivative_taps(5), (std::vector<std::int32_t>{-1, -2, 0, 2, 1}));
  EXPECT_THROW(smoothing_taps(4), Error);
  EXPECT_THROW(derivative_taps(11), Error);
}

// Gx = 8 a, Gy = 8 b for a x + b y and 3 x 3; in general the factor is 2^(2 size - 3).
TEST(Sobel, RampGivesItsSlopes) {
  const Image ramp = filled(20, 24, [](int y, int x) { return 100 + 7 * x + 3 * y; });
  for (const int size : {3, 5, 7, 9}) {
    const Gradients gradients = sobel(ramp.frame(), size);
    inside(ramp, size, [&](std::size_t i) {
      ASSERT_EQ(gradients.gx[i], 7 << (2 * size - 3));
      ASSERT_EQ(gradients.gy[i], 3 << (2 * size - 3));
    });
  }
  EXPECT_EQ(1 << (2 * 3 - 3), 8);
}

TEST(Sobel, ConstantGivesZeroInsideAndEdgesOutside) {
  const Image flat = filled(16, 16, [](int, int) { return 1000; });
  for (const int size : {3, 5, 7, 9}) {
    const Gradients gradients = sobel(flat.frame(), size);
    inside(flat, size, [&](std::size_t i) {
      ASSERT_EQ(gradients.gx[i], 0);
      ASSERT_EQ(gradients.gy[i], 0);
    });
  }
  const Gradients gradients = sobel(flat.frame(), 3);
  EXPECT_EQ(gradients.gx[16 * 8], 4 * 1000);        // zeros to the left
  EXPECT_EQ(gradients.gx[16 * 8 + 15], -4 * 1000);  // zeros to the right
  EXPECT_EQ(gradients.gy[8], 4 * 1000);
}

TEST(Sobel, IsTheWindowedSumExactly) {
  RandomStream random(1);
  const Image noise = filled(13, 29, [&](int, int) { return random.below(65536); });
  const Image extreme = filled(12, 12, [](int y, int x) { return (x + y) % 2 ? 65535 : 0; });
  const Image step = filled(12, 12, [](int, int x) { return x < 6 ? 0 : 65535; });
  for (const Image* image : {&noise, &extreme, &step})
    for (const int size : {3, 5, 7, 9}) {
      const Gradients fast = sobel(image->frame(), size), plain = sobel_by_window(image->frame(), size);
      EXPECT_EQ(fast.gx, plain.gx);
      EXPECT_EQ(fast.gy, plain.gy);
    }
  // The largest gradient there is stays within 32 bits.
  const Gradients largest = sobel(step.frame(), 9);
  EXPECT_EQ(*std::max_element(largest.gx.begin(), largest.gx.end()), 65535 * 256 * 35);
}

TEST(Sobel, TransposingSwapsTheGradients) {
  RandomStream random(2);
  const Image image = filled(10, 10, [&](int, int) { return random.below(65536); });
  const Image transposed =
      filled(10, 10, [&](int y, int x) { return image.pixels[static_cast<std::size_t>(x * 10 + y)]; });
  const Gradients a = sobel(image.frame(), 5), b = sobel(transposed.frame(), 5);
  for (std::size_t y = 0; y < 10; ++y)
    for (std::size_t x = 0; x < 10; ++x) EXPECT_EQ(a.gx[y * 10 + x], b.gy[x * 10 + y]);
}

TEST(Sobel, MagnitudeIsTheHypotenuse) {
  EXPECT_EQ(gradient_magnitude({{3, -5, 0}, {4, 12, 0}}), (std::vector<float>{5, 13, 0}));
}

TEST(Sobel, RefusesAFrameOfTheWrongSize) {
  const std::vector<std::uint16_t> pixels(10);
  EXPECT_THROW(sobel({3, 4, pixels}, 3), Error);
}

TEST(SobelCommand, FiltersTheFramesOfAFile) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator_entry = data::sobel_generator();
  generator_entry.make(Options(generator_entry.options, std::vector<std::string>{"side=64", "tracks=10"}))
      ->write({folder / "frames.h5", 2, 5, &pool});
  const Entry& entry = find_baseline("sobel-800");
  const Options options(entry.options, std::vector<std::string>{"window=5", "sweep=3,7"});
  const Report report =
      entry.run({folder / "frames.h5", folder / "edges.h5", folder / "page.html", &pool}, options);
  EXPECT_EQ(report.metrics.back().name, "time_per_frame_7x7");
  const data::Hdf5File in(folder / "frames.h5"), out(folder / "edges.h5");
  const Tensor frame = in.read_rows("frame", ElementType::u16, 4, 1),
               gx = out.read_rows("gx", ElementType::i32, 4, 1);
  const Gradients expected = sobel({64, 64, frame.as<std::uint16_t>()}, 5);
  EXPECT_TRUE(std::equal(expected.gx.begin(), expected.gx.end(), gx.as<std::int32_t>().begin()));
  EXPECT_TRUE(std::any_of(expected.gx.begin(), expected.gx.end(), [](auto value) { return value != 0; }));
  EXPECT_THROW(entry.run({folder / "frames.h5", {}, {}, &pool},
                         Options(entry.options, std::vector<std::string>{"sweep=3,4"})),
               Error);
}

}  // namespace
}  // namespace superstep::baseline
