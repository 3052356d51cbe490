// Closed forms and published bounds of the effective conductivity in two dimensions.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/physics/materials/conductivity.h"
#include "superstep/physics/materials/microstructure.h"

namespace superstep::data {
namespace {

using Image = std::vector<double>;

Image draw(int size, const std::function<double(int x, int y)>& sigma) {
  Image image;
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) image.push_back(sigma(x, y));
  return image;
}

Conductivity solve(const Image& image) {
  const int size = static_cast<int>(std::lround(std::sqrt(image.size())));
  return effective_conductivity(image, size, size);
}

Image of(const Microstructure& image, double conductor, double insulator) {
  return draw(image.size, [&](int x, int y) { return image.at(x, y) ? conductor : insulator; });
}

// A square array of insulating discs of area fraction f: one centred disc a cell.
Image disc_array(int size, double fraction) {
  const double radius = size * std::sqrt(fraction / std::numbers::pi), centre = (size - 1) / 2.0;
  return draw(size, [&](int x, int y) { return std::hypot(x - centre, y - centre) <= radius ? 0.0 : 1.0; });
}

// Lord Rayleigh's series for that array, as extended by Perrins et al., Proc. R. Soc. A 369 (1979).
double rayleigh(double f) {
  const double f4 = std::pow(f, 4), f8 = f4 * f4;
  return 1 - 2 * f / (1 + f - 0.305827 * f4 / (1 - 1.402958 * f8) - 0.013362 * f8);
}

TEST(Conductivity, UniformImageReturnsAtOnce) {
  const Conductivity uniform = solve(draw(64, [](int, int) { return 3.5; }));
  EXPECT_EQ(uniform.iterations, 0);
  EXPECT_NEAR(uniform.effective, 3.5, 1e-12);
  EXPECT_NEAR(uniform.at_right, 3.5, 1e-12);
  EXPECT_TRUE(uniform.percolates);
}

TEST(Conductivity, LaminatesAreExactToSixDigits) {
  const double series = solve(draw(256, [](int x, int) { return x / 16 % 2 ? 0.01 : 1.0; })).effective;
  const double parallel = solve(draw(256, [](int, int y) { return y / 16 % 2 ? 0.01 : 1.0; })).effective;
  EXPECT_NEAR(series, 2 / (1 / 1.0 + 1 / 0.01), 1e-6 * series);
  EXPECT_NEAR(series, 0.019802, 5e-7);
  EXPECT_NEAR(parallel, 0.505, 1e-6 * parallel);
  // A negative control: laminates of another contrast are told apart.
  EXPECT_GT(
      std::abs(solve(draw(256, [](int x, int) { return x / 16 % 2 ? 0.0101 : 1.0; })).effective - series),
      1e-5);
}

TEST(Conductivity, CheckerboardIsNearDykhnesLimit) {
  const double board =
      solve(draw(256, [](int x, int y) { return (x / 16 + y / 16) % 2 ? 0.25 : 1.0; })).effective;
  EXPECT_NEAR(board, 0.4944, 5e-5);
  EXPECT_LT(board, 0.5);  // sqrt(1 * 0.25)
}

TEST(Conductivity, DiscArrayMatchesItsTableAndTendsToRayleigh) {
  const double fractions[] = {0.1, 0.3, 0.5}, limit[] = {0.81818, 0.53758, 0.32466};
  const double at256[] = {0.81602, 0.53519, 0.32269}, at512[] = {0.81734, 0.53648, 0.32365};
  for (int k = 0; k < 3; ++k) {
    EXPECT_NEAR(rayleigh(fractions[k]), limit[k], 5e-6);
    const double coarse = solve(disc_array(256, fractions[k])).effective;
    const double fine = solve(disc_array(512, fractions[k])).effective;
    EXPECT_NEAR(coarse, at256[k], 1.5e-5) << fractions[k];
    EXPECT_NEAR(fine, at512[k], 1.5e-5) << fractions[k];
    EXPECT_LT(std::abs(fine - limit[k]), 0.65 * std::abs(coarse - limit[k]));
  }
}

// The ranges 0.377 to 0.409 and 0.163 to 0.205 are two samples each of a wide distribution (a standard
// deviation of 0.047 and 0.040 was found over 60 images): both ends must be likely values of ours.
TEST(Conductivity, OverlappingDiscsAgreeWithPublishedSamplesAndObeyTheBound) {
  const struct { double fraction, low, high; } rows[] = {{0.3, 0.377, 0.409}, {0.5, 0.163, 0.205}};
  for (const auto& row : rows) {
    double mean = 0, square = 0;
    constexpr int images = 16;
    for (std::uint64_t k = 0; k < images; ++k) {
      RandomStream random(11, k);
      const double value = solve(of(overlapping_discs(random, 256, 6, 20, row.fraction), 1, 0)).effective;
      EXPECT_LT(value, (1 - row.fraction) / (1 + row.fraction));  // Hashin and Shtrikman, two dimensions
      mean += value / images;
      square += value * value / images;
    }
    const double deviation = std::sqrt(square - mean * mean);
    EXPECT_LT(std::abs(row.low - mean), 2 * deviation) << mean;
    EXPECT_LT(std::abs(row.high - mean), 2 * deviation) << mean;
    EXPECT_LT(mean, std::pow(1 - row.fraction, 1.5));  // Bruggeman's estimate, too high in two dimensions
  }
}

// sigma_x of an image times sigma_y of its reciprocal is 1 in the continuum (J. B. Keller, 1964).
double duality(const Microstructure& image, double contrast) {
  const Image sigma = of(image, 1, 1 / contrast);
  const Image turned = draw(image.size, [&](int x, int y) { return image.at(y, x) ? 1 : contrast; });
  return solve(sigma).effective * solve(turned).effective;
}

TEST(Conductivity, DualityTendsToOneWithRefinement) {
  RandomStream random(5, 0);
  const Microstructure coarse = threshold_field(random, 128, 8, 0.5);
  Microstructure fine(256);
  for (int y = 0; y < 256; ++y)
    for (int x = 0; x < 256; ++x) fine.at(x, y) = coarse.at(x / 2, y / 2);
  double previous = 1;
  for (double contrast : {4.0, 10.0, 100.0}) {
    const double at_coarse = duality(coarse, contrast), at_fine = duality(fine, contrast);
    EXPECT_LT(at_fine, previous) << contrast;
    EXPECT_LT(1 - at_fine, 0.8 * (1 - at_coarse)) << contrast;
    previous = at_fine;
  }
}

TEST(Conductivity, DualityOfACorrelatedFieldAt256) {
  const double contrasts[] = {4, 10, 100}, expected[] = {0.988, 0.974, 0.950};
  for (int k = 0; k < 3; ++k) {
    double mean = 0;
    for (std::uint64_t sample = 0; sample < 3; ++sample) {
      RandomStream random(6, sample);
      mean += duality(threshold_field(random, 256, 10, 0.5), contrasts[k]) / 3;
    }
    EXPECT_NEAR(mean, expected[k], 0.35 * (1 - expected[k])) << "contrast " << contrasts[k];
  }
}

TEST(Conductivity, CurrentsAgreeAndFlipsAndScaleDoNotMatter) {
  RandomStream random(2, 1);
  const Microstructure image = pack_particles(random, 255, {.fraction = 0.5});  // an odd size
  const Image sigma = of(image, 1, 0);
  const Conductivity whole = solve(sigma);
  EXPECT_NEAR(whole.effective, whole.at_right, 1e-5 * whole.effective);
  EXPECT_LE(whole.residual, 1e-8);
  const int last = image.size - 1;
  const auto flipped = [&](bool x_axis, bool y_axis) {
    return solve(draw(image.size,
                      [&](int x, int y) -> double {
                        return image.at(x_axis ? last - x : x, y_axis ? last - y : y);
                      }))
        .effective;
  };
  EXPECT_NEAR(flipped(true, false), whole.effective, 1e-5 * whole.effective);
  EXPECT_NEAR(flipped(false, true), whole.effective, 1e-5 * whole.effective);
  EXPECT_NEAR(solve(of(image, 7.3, 0)).effective, 7.3 * whole.effective, 1e-5 * whole.effective);
}

TEST(Conductivity, AnInsulatorOfOneMillionthIsNearlyPerfect) {
  RandomStream random(3, 1);
  const Microstructure image = threshold_field(random, 128, 10, 0.35);
  const double perfect = solve(of(image, 1, 0)).effective, leaky = solve(of(image, 1, 1e-6)).effective;
  EXPECT_GT(leaky, perfect);
  EXPECT_NEAR(leaky, perfect, 1e-3 * perfect);
}

TEST(Conductivity, WithoutAPathItIsZeroWithAFlag) {
  const Conductivity wall = solve(draw(64, [](int x, int) { return x == 30 ? 0.0 : 1.0; }));
  EXPECT_FALSE(wall.percolates);
  EXPECT_EQ(wall.effective, 0);
  // Cells that touch only at corners do not conduct.
  EXPECT_FALSE(solve(draw(16, [](int x, int y) { return x == y ? 1.0 : 0.0; })).percolates);
  EXPECT_FALSE(solve(draw(8, [](int, int) { return 0.0; })).percolates);
  EXPECT_TRUE(solve(draw(16, [](int x, int y) { return x == y || x == y + 1 ? 1.0 : 0.0; })).percolates);
}

TEST(Conductivity, AStaircaseOfSinglePixelsIsAChainOfResistors) {
  // 29 faces of coefficient 1 from (0,0) to (15,14), an electrode of 2 on the left; on the right another of
  // 2 beside the detour over (15,15).
  const Conductivity chain = solve(draw(16, [](int x, int y) { return x == y || x == y + 1 ? 1.0 : 0.0; }));
  const double resistance = 0.5 + 29 + 1 / (2 + 1 / (1 + 0.5));
  EXPECT_NEAR(chain.effective, 1 / resistance, 1e-8);
}

TEST(Conductivity, PotentialIsLinearInAUniformImageAndAbsentWhereNothingFlows) {
  const Image image = draw(8, [](int, int y) { return y < 4 ? 1.0 : 0.0; });
  const Conductivity half = effective_conductivity(image, 8, 8, {.keep_potential = true});
  EXPECT_NEAR(half.effective, 0.5, 1e-9);
  EXPECT_NEAR(half.potential[0], 1 - 0.5 / 8, 1e-9);
  EXPECT_TRUE(std::isnan(half.potential[63]));
}

// Without insulator the current is the same everywhere; beside a wall it all flows in the conductor; and what
// crosses any column is the current of the electrodes.
TEST(Conductivity, CurrentDensityIsUniformInLaminatesAndConserved) {
  const Image stripes = draw(8, [](int, int y) { return y < 4 ? 3.0 : 0.0; });
  const auto density =
      current_density(effective_conductivity(stripes, 8, 8, {.keep_potential = true}), stripes, 8, 8);
  for (std::size_t i = 0; i < density.size(); ++i) EXPECT_NEAR(density[i], i < 32 ? 3.0 / 8 : 0, 1e-6);
  const Image steps =
      draw(8, [](int x, int) { return x < 4 ? 1.0 : 0.25; });  // in series: no transverse part
  const Conductivity series = effective_conductivity(steps, 8, 8, {.keep_potential = true});
  for (const float value : current_density(series, steps, 8, 8))
    EXPECT_NEAR(value, series.effective / 8, 1e-6);
  const Image wall = draw(8, [](int x, int) { return x == 3 ? 0.0 : 1.0; });
  for (const float value :
       current_density(effective_conductivity(wall, 8, 8, {.keep_potential = true}), wall, 8, 8))
    EXPECT_EQ(value, 0);
}

TEST(Conductivity, RefusesBadInput) {
  const auto message = [](const Image& image, const ConductivitySettings& settings) -> std::string {
    try {
      effective_conductivity(image, 2, 2, settings);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({1, 2, 3}, {}).find("3 values for an image of 2 x 2 pixels"), std::string::npos);
  EXPECT_NE(message({1, 2, -3, 4}, {}).find("conductivity -3 at pixel 2"), std::string::npos);
  EXPECT_NE(message({1, NAN, 3, 4}, {}).find("conductivity nan at pixel 1"), std::string::npos);
  EXPECT_NE(message({1, 2, 3, 4}, {.max_iterations = 0}).find("after 0 iterations"), std::string::npos);
}

}  // namespace
}  // namespace superstep::data
