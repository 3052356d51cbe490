#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>

#include "superstep/base/file.h"
#include "superstep/base/statistics.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/xray/bragg_generator.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

constexpr std::uint64_t seed = 20240501;

std::size_t field_index(const Generator& generator, std::string_view name) {
  const auto fields = generator.fields();
  return static_cast<std::size_t>(std::ranges::find(fields, name, &Field::name) - fields.begin());
}

std::vector<double> values_of(const Generator& generator, const std::vector<Tensor>& made,
                              std::string_view name) {
  const auto values = made[field_index(generator, name)].as<float>();
  return {values.begin(), values.end()};
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].bytes(), b[i].bytes(), a[i].byte_count()) != 0) return false;
  return a.size() == b.size();
}

// The mean of `values` lies within four standard errors of that of a uniform distribution, and all lie in it.
void expect_uniform(const std::vector<double>& values, double low, double high) {
  const double error = (high - low) / std::sqrt(12.0 * static_cast<double>(values.size()));
  EXPECT_NEAR(superstep::mean(values), 0.5 * (low + high), 4 * error);
  EXPECT_GE(*std::ranges::min_element(values), low - 1e-6);
  EXPECT_LE(*std::ranges::max_element(values), high + 1e-6);
  EXPECT_NEAR(quantile(values, 0.25), 0.75 * low + 0.25 * high, 4 * 1.5 * error);
}

// Both parts of the pseudo-Voigt are half of their height at q = 2 ln 2, the half width at half maximum.
TEST(BraggModel, ProfileHasTheClosedForm) {
  const double half_width = std::sqrt(2 * std::numbers::ln2);
  for (const double eta : {0.0, 0.3, 1.0}) {
    const BraggPeak peak{
        .amplitude = 100, .sigma1 = 2, .sigma2 = 1, .angle = 0.5, .eta = eta, .column = 3, .row = 4};
    EXPECT_NEAR(bragg_intensity(peak, 3, 4), 100, 1e-9);
    const double u = 2 * half_width, v = half_width;
    EXPECT_NEAR(bragg_intensity(peak, 3 + u * std::cos(0.5), 4 + u * std::sin(0.5)), 50, 1e-9);
    EXPECT_NEAR(bragg_intensity(peak, 3 - v * std::sin(0.5), 4 + v * std::cos(0.5)), 50, 1e-9);
  }
}

TEST(BraggModel, PixelIntegrationIsTheMeanOverThePixel) {
  const BraggPeak peak{
      .amplitude = 1000, .sigma1 = 0.8, .sigma2 = 0.9, .angle = 0.7, .eta = 0.4, .column = 0.3, .row = 0.2};
  BraggImage image(0, 0, 1, 1);
  image.add(peak, true);
  double sum = 0;
  constexpr int steps = 400;
  for (int i = 0; i < steps; ++i)
    for (int j = 0; j < steps; ++j)
      sum += bragg_intensity(peak, (j + 0.5) / steps - 0.5, (i + 0.5) / steps - 0.5);
  const double exact = sum / (steps * steps);
  EXPECT_NEAR(image.at(0, 0) / exact, 1, 1e-4);
  EXPECT_GT(std::abs(bragg_intensity(peak, 0, 0) / exact - 1), 1e-2);  // the pixel's centre is not
}

TEST(BraggModel, BlurKeepsTheSumAndSpreadsAPoint) {
  BraggImage image(0, 0, 21, 21);
  image.add({.amplitude = 1, .sigma1 = 1e-3, .sigma2 = 1e-3, .column = 10, .row = 10}, false);
  image.blur(1.5);
  double sum = 0, second = 0;
  for (int row = 0; row < 21; ++row)
    for (int column = 0; column < 21; ++column) {
      sum += image.at(column, row);
      second += image.at(column, row) * (column - 10) * (column - 10);
    }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_NEAR(second, 1.5 * 1.5 + 1.0 / 12, 2e-3);  // the pixel's own variance comes on top
}

// What is left out beyond the reach is below the floor everywhere.
TEST(BraggModel, ReachIsFarEnough) {
  for (const double eta : {0.0, 0.5, 1.0}) {
    const BraggPeak peak{
        .amplitude = 3000, .sigma1 = 1.1, .sigma2 = 0.8, .angle = 1, .eta = eta, .column = 100, .row = 100};
    BraggImage whole(0, 0, 200, 200), cut(0, 0, 200, 200);
    whole.add(peak, false);
    cut.add(peak, false, 5);
    double most = 0, pixels = 0;
    for (int row = 0; row < 200; ++row)
      for (int column = 0; column < 200; ++column) {
        most = std::max(most, whole.at(column, row) - cut.at(column, row));
        pixels += cut.at(column, row) > 0;
      }
    EXPECT_LT(most, 5);
    EXPECT_LT(pixels, 40000);
  }
}

TEST(BraggPatches, ParametersFollowTheRecipe) {
  ThreadPool pool(2);
  const BraggPatchGenerator generator({});
  const auto made = generate_in_memory(generator, seed, 0, 20000, pool);
  const auto values = [&](const char* name) { return values_of(generator, made, name); };
  std::vector<double> logs = values("amplitude"), ratio = values("sigma2"), widths = values("sigma1");
  for (double& value : logs) value = std::log(value);
  for (std::size_t i = 0; i < ratio.size(); ++i) ratio[i] /= widths[i];
  expect_uniform(logs, std::log(100), std::log(5000));
  expect_uniform(values("sigma1"), 0.8, 2.0);
  expect_uniform(ratio, 0.7, 1.4);
  expect_uniform(values("angle"), 0, std::numbers::pi);
  expect_uniform(values("eta"), 0, 1);
  expect_uniform(values("background"), 0.5, 5);
  expect_uniform(values("center_x"), 3.5, 6.5);
  expect_uniform(values("center_y"), 3.5, 6.5);
}

// Counts of pixels, standardised with their expectations, have mean 0 and variance 1; with the expectations
// of other patches they have not.
TEST(BraggPatches, CountsArePoissonAroundTheIntensity) {
  ThreadPool pool(2);
  const BraggPatchGenerator generator({});
  constexpr std::int64_t patches = 2000;
  const auto made = generate_in_memory(generator, seed, 0, patches, pool);
  const auto counts = made[0].as<float>();
  const auto squares_with = [&](std::int64_t other) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < patches; ++i) {
      const BraggPeak peak = generator.peak(seed, static_cast<std::uint64_t>(i + other));
      for (int at = 0; at < 121; ++at) {
        const double expected = bragg_intensity(peak, at % 11, at / 11) + peak.background;
        const double z = (counts[static_cast<std::size_t>(i * 121 + at)] - expected) / std::sqrt(expected);
        sum += z;
        squares += z * z;
      }
    }
    return std::pair(sum / (121 * patches), squares / (121 * patches));
  };
  const auto [own_mean, own_squares] = squares_with(0);
  EXPECT_NEAR(own_mean, 0, 4 / std::sqrt(121.0 * patches));
  EXPECT_NEAR(own_squares, 1, 0.02);
  EXPECT_GT(squares_with(1).second, 10);
}

TEST(BraggPatches, PlocIsTheCentreInPatchSizes) {
  ThreadPool pool(1);
  for (const BraggPatchSettings& settings :
       {BraggPatchSettings{}, BraggPatchSettings{.patch_size = 15, .margin = 2}}) {
    const BraggPatchGenerator generator(settings);
    const auto made = generate_in_memory(generator, seed, 5, 50, pool);
    const std::vector<double> x = values_of(generator, made, "center_x"),
                              y = values_of(generator, made, "center_y");
    const double size = settings.patch_size + 2 * settings.margin;
    EXPECT_EQ(made[0].shape(), (Shape{50, std::int64_t(size), std::int64_t(size)}));
    for (std::size_t i = 0; i < 50; ++i) {
      EXPECT_NEAR(made[1].as<float>()[2 * i] * size, x[i], 1e-5);
      EXPECT_NEAR(made[1].as<float>()[2 * i + 1] * size, y[i], 1e-5);
      EXPECT_LE(std::abs(x[i] - (size - 1) / 2), 1.5);
    }
  }
}

TEST(BraggPatches, SameBitsWhateverTheThreadsAndTheOrder) {
  const BraggPatchGenerator generator(
      {.overlap = 0.5,
       .detector = {
           .integrate = true, .point_spread = 0.3, .read_noise = 1, .saturation = 500, .threshold = 3}});
  ThreadPool one(1), four(4);
  const auto made = generate_in_memory(generator, seed, 0, 300, one);
  EXPECT_TRUE(same_bits(made, generate_in_memory(generator, seed, 0, 300, four)));
  EXPECT_FALSE(same_bits(made, generate_in_memory(generator, seed + 1, 0, 300, four)));
  for (const std::uint64_t index : {299u, 7u, 0u}) {
    const auto alone = generate_in_memory(generator, seed, index, 1, one);
    EXPECT_EQ(std::memcmp(alone[0].bytes(), made[0].bytes() + index * 121 * 4, 121 * 4), 0);
  }
}

TEST(BraggPatches, FilesAreTheSameWhateverTheThreads) {
  const ScratchFolder folder;
  const BraggPatchGenerator generator({});
  ThreadPool one(1), four(4);
  generator.write({folder / "one.h5", seed, 1000, &one});
  generator.write({folder / "four.h5", seed, 1000, &four});
  EXPECT_EQ(read_text_file(folder / "one.h5"), read_text_file(folder / "four.h5"));
  const Hdf5File a(folder / "one.h5");
  EXPECT_EQ(a.data_sets().size(), generator.fields().size());
  EXPECT_EQ(std::get<std::int64_t>(a.attributes().at("synthetic")), 1);
  EXPECT_NE(std::get<std::string>(a.attributes().at("parameters")).find("\"offset\":1.5"), std::string::npos);
}

TEST(BraggPatches, EffectsDoWhatTheySay) {
  ThreadPool pool(2);
  const auto patches = [&](const BraggDetector& detector) {
    const BraggPatchGenerator generator({.detector = detector});
    const auto values = generate_in_memory(generator, seed, 0, 300, pool)[0];
    const auto span = values.as<float>();
    return std::vector<double>(span.begin(), span.end());
  };
  const auto fractional = [](double value) { return value != std::floor(value); };
  const std::vector<double> plain = patches({});
  EXPECT_EQ(std::ranges::count_if(plain, fractional), 0);
  EXPECT_GT(*std::ranges::max_element(plain), 1000);

  const std::vector<double> noisy = patches({.read_noise = 1});
  std::vector<double> difference(noisy.size());
  for (std::size_t i = 0; i < noisy.size(); ++i)
    difference[i] = (noisy[i] - plain[i]) * (noisy[i] - plain[i]);
  EXPECT_NEAR(superstep::mean(difference), 1, 0.05);  // the counts are the same, the noise has variance 1

  EXPECT_EQ(std::ranges::max(patches({.saturation = 1000})), 1000);
  const std::vector<double> clipped = patches({.threshold = 10});
  EXPECT_EQ(std::ranges::count_if(clipped, [](double v) { return v > 0 && v < 10; }), 0);
  EXPECT_GT(std::ranges::count(clipped, 0.0), 1000);
  EXPECT_LT(std::ranges::max(patches({.point_spread = 1})), std::ranges::max(plain));
  EXPECT_NE(patches({.integrate = true}), plain);
}

TEST(BraggPatches, TwoPercentOverlap) {
  ThreadPool pool(2);
  const BraggPatchGenerator generator({.overlap = 0.02});
  const auto made = generate_in_memory(generator, seed, 0, 20000, pool);
  const auto amplitude = values_of(generator, made, "neighbor_amplitude"),
             x = values_of(generator, made, "neighbor_x");
  const auto present = std::ranges::count_if(amplitude, [](double a) { return a > 0; });
  EXPECT_NEAR(static_cast<double>(present) / 20000, 0.02, 4 * std::sqrt(0.02 * 0.98 / 20000));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(amplitude[i] > 0, x[i] != 0);
}

std::unique_ptr<Generator> make(std::vector<std::string> settings) {
  const GeneratorEntry& entry = find_generator("braggnn");
  return entry.make(Options(entry.options, settings));
}

TEST(BraggPatches, OptionsReachTheGenerator) {
  const auto generator = make({"patch_size=15", "margin=1", "saturation=16384", "offset=2", "threshold=4"});
  const nlohmann::json parameters = generator->parameters();
  EXPECT_EQ(generator->fields()[0].shape, (Shape{17, 17}));
  EXPECT_EQ(parameters["margin"], 1);
  EXPECT_EQ(parameters["detector"]["saturation"], 16384);
  EXPECT_EQ(parameters["detector"]["threshold"], 4);
  EXPECT_EQ(make({"mode=frames"})->parameters()["detector"]["threshold"], 20);
}

TEST(BraggPatches, WrongOptionsAreRefused) {
  const auto refused = [](std::vector<std::string> settings, std::initializer_list<std::string> parts) {
    expect_error(ErrorCode::invalid_argument, parts, [&] { make(settings); });
  };
  refused({"patch_size=10"}, {"10 px", "odd"});
  refused({"patch_size=25"}, {"between 9 and 23"});
  refused({"patchsize=11"}, {"patchsize", "'patch_size'"});
  refused({"sigma_low=3"}, {"3 is larger than 2", "sigma_low"});
  refused({"mode=film"}, {"patches, frames"});
  refused({"overlap=2"}, {"overlap", "[0, 1]"});
  expect_error(ErrorCode::invalid_argument, {"bragnn", "'braggnn'"}, [] { find_generator("bragnn"); });
}

}  // namespace
}  // namespace superstep::data
