// Fourier ring correlation beside closed forms.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/baseline/ptychography/fourier_ring.h"
#include "superstep/physics/fft.h"

namespace superstep::baseline {
namespace {

using Picture = std::vector<std::complex<float>>;
constexpr int n = 64;

Picture white(std::uint64_t seed, double scale = 1) {
  RandomStream random(seed);
  Picture picture;
  for (int i = 0; i < n * n; ++i) picture.emplace_back(static_cast<float>(scale * random.normal()));
  return picture;
}

Picture sum_of(const Picture& a, const Picture& b) {
  Picture sum = a;
  for (std::size_t i = 0; i < a.size(); ++i) sum[i] += b[i];
  return sum;
}

// What lies below `cut` cycles a pixel.
Picture low_pass(Picture picture, double cut) {
  auto& fft = data::thread_fft<float>({n, n});
  fft.forward(picture);
  for (int i = 0; i < n * n; ++i)
    if (std::hypot(data::fft_frequency(i / n, n), data::fft_frequency(i % n, n)) > cut)
      picture[static_cast<std::size_t>(i)] = 0;
  fft.inverse(picture);
  for (auto& value : picture) value /= n * n;
  return picture;
}

TEST(FourierRing, OfAPictureWithItselfIsOneAndWithItsNegativeMinusOne) {
  const Picture a = white(1);
  Picture negative = a, brighter = a;
  for (auto& value : negative) value = -value;
  for (auto& value : brighter) value *= 3.5f;
  const auto same = fourier_ring_correlation(a, a, n), turned = fourier_ring_correlation(a, negative, n),
             scaled = fourier_ring_correlation(a, brighter, n);
  ASSERT_EQ(same.correlation.size(), static_cast<std::size_t>(n / 2 + 1));
  for (std::size_t ring = 0; ring < same.correlation.size(); ++ring) {
    EXPECT_NEAR(same.correlation[ring], 1, 1e-5);
    EXPECT_NEAR(turned.correlation[ring], -1, 1e-5);
    EXPECT_NEAR(scaled.correlation[ring], 1, 1e-5);
  }
  EXPECT_FALSE(cut_off(same, half_bit));
}

TEST(FourierRing, HasAllFrequenciesOfItsRings) {
  const auto rings = fourier_ring_correlation(white(1), white(2), n);
  EXPECT_EQ(rings.count[0], 1);
  EXPECT_EQ(rings.count[1], 8);  // (0, 1), (1, 1) and their like
  double within = 0, counted = 0;
  for (int y = -n / 2; y < n / 2; ++y)
    for (int x = -n / 2; x < n / 2; ++x) within += std::lround(std::hypot(y, x)) <= n / 2;
  for (const double count : rings.count) counted += count;
  EXPECT_EQ(counted, within);
}

// Of two pictures with one signal and noise of their own, signal / (signal + noise) in power.
TEST(FourierRing, TellsTheShareOfTheSignal) {
  const Picture signal = white(3);
  for (const double noise : {0.5, 1.0, 2.0}) {
    const auto rings =
        fourier_ring_correlation(sum_of(signal, white(4, noise)), sum_of(signal, white(5, noise)), n);
    double sum = 0, count = 0;
    for (std::size_t ring = 4; ring < rings.count.size(); ++ring)
      sum += rings.count[ring] * rings.correlation[ring], count += rings.count[ring];
    EXPECT_NEAR(sum / count, 1 / (1 + noise * noise), 0.05) << noise;
  }
  const auto none = fourier_ring_correlation(white(6), white(7), n);  // the control
  double sum = 0, count = 0;
  for (std::size_t ring = 4; ring < none.count.size(); ++ring)
    sum += none.count[ring] * none.correlation[ring], count += none.count[ring];
  EXPECT_NEAR(sum / count, 0, 0.05);
}

// Common below a frequency, and noise alone above it.
TEST(FourierRing, FindsWhereTwoPicturesPart) {
  const Picture common = white(8);
  for (const double cut : {0.125, 0.25, 0.375}) {
    const auto smooth = low_pass(common, cut);
    const auto rings =
        fourier_ring_correlation(sum_of(smooth, white(9, 0.02)), sum_of(smooth, white(10, 0.02)), n);
    const auto by_bits = cut_off(rings, half_bit), by_half = cut_off(rings, [](double) { return 0.5; });
    ASSERT_TRUE(by_bits && by_half);
    EXPECT_NEAR(*by_bits, cut, 1.5 / n);
    EXPECT_NEAR(*by_half, cut, 1.5 / n);
  }
}

// A shift by one pixel turns each frequency by 2 pi q cos(angle), and an impulse has all of them alike: the
// mean cosine over a ring is J0(2 pi q).
TEST(FourierRing, OfAShiftedImpulseIsABesselFunction) {
  Picture impulse(static_cast<std::size_t>(n * n)), shifted(impulse.size());
  impulse[5 * n + 9] = 1;
  shifted[6 * n + 9] = 1;
  const auto rings = fourier_ring_correlation(impulse, shifted, n);
  for (std::size_t ring = 3; ring < rings.correlation.size(); ++ring)
    EXPECT_NEAR(rings.correlation[ring], std::cyl_bessel_j(0, 2 * std::numbers::pi * rings.frequency(ring)),
                0.03)
        << ring;
}

TEST(FourierRing, HalfABitFallsToItsLimit) {
  // (1/2-bit: SNR of each half 0.2071): SNR / (1 + SNR) of unlimited frequencies.
  EXPECT_NEAR(half_bit(1e12), 0.2071 / 1.2071, 1e-4);
  EXPECT_NEAR(half_bit(2), (0.2071 + 1.9102) / (1.2071 + 0.9102), 1e-9);
  EXPECT_GT(half_bit(8), half_bit(80));
}

TEST(FourierRing, RefusesWhatAreNotTwoPictures) {
  const auto message = [](const Picture& a, const Picture& b, int side) -> std::string {
    try {
      fourier_ring_correlation(a, b, side);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message(Picture(16), Picture(15), 4).find("16 and 15 values"), std::string::npos);
  EXPECT_NE(message(Picture(4), Picture(4), 2).find("no rings"), std::string::npos);
  Picture holed(16, 1.0f);
  holed[7] = NAN;
  EXPECT_NE(message(Picture(16), holed, 4).find("pixel (1, 3) is not finite"), std::string::npos);
}

TEST(LargestSquare, LiesWhollyWithin) {
  const auto of = [](const std::vector<float>& area, int height, int width) {
    const Square s = largest_square(area, height, width);
    return std::vector{s.top, s.left, s.side};
  };
  EXPECT_EQ(of({1, 1, 0, 1, 1, 1, 0, 1, 1}, 3, 3), (std::vector{0, 0, 2}));
  EXPECT_EQ(of({0, 0, 0, 0}, 2, 2), (std::vector{0, 0, 0}));
  EXPECT_EQ(of({1, 1, 1, 1, 1, 1}, 2, 3), (std::vector{0, 0, 2}));
  std::vector<float> disc;
  for (int y = 0; y < 41; ++y)
    for (int x = 0; x < 41; ++x) disc.push_back(std::hypot(y - 20, x - 20) <= 20);
  const Square square = largest_square(disc, 41, 41);
  EXPECT_NEAR(square.side, 40 / std::numbers::sqrt2, 2);
  EXPECT_NEAR(square.top + 0.5 * (square.side - 1), 20, 1);
  EXPECT_THROW(largest_square(disc, 40, 41), Error);
}

TEST(TaperedPhase, IsOfThePhaseAlone) {
  constexpr int side = 24;
  std::vector<std::complex<float>> object, brighter;
  RandomStream random(3);
  for (int i = 0; i < side * side; ++i) {
    object.push_back(std::polar(1.0f, static_cast<float>(random.uniform(-1, 1))));
    brighter.push_back(object.back() * static_cast<float>(random.uniform(0.5, 2)));
  }
  const Square square{2, 1, 20};
  const auto a = tapered_phase(object, side, square), b = tapered_phase(brighter, side, square);
  ASSERT_EQ(a.size(), 400U);
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(std::abs(a[i] - b[i]), 0, 1e-5);
    largest = std::max(largest, double{std::abs(a[i])});
  }
  EXPECT_LT(std::abs(a[0]), 0.05 * largest);
  EXPECT_GT(largest, 0.3);
}

}  // namespace
}  // namespace superstep::baseline
