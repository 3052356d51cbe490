#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/baseline/imaging/mri.h"
#include "superstep/baseline/imaging/segment.h"
#include "superstep/baseline/materials/destripe.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/materials/microstructure.h"
#include "superstep/physics/materials/stripes.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(Otsu, SeparatesTwoAndThreeGroups) {
  Bytes values;
  for (int i = 0; i < 300; ++i)
    values.push_back(static_cast<std::uint8_t>((i % 3 == 0 ? 20 : i % 3 == 1 ? 100 : 200) + i % 7));
  const std::vector<int> three = otsu_thresholds(values, 3);
  ASSERT_EQ(three.size(), 2u);
  EXPECT_TRUE(three[0] >= 26 && three[0] < 100) << three[0];
  EXPECT_TRUE(three[1] >= 106 && three[1] < 200) << three[1];
  const Bytes two{10, 10, 12, 90, 91, 95};
  EXPECT_TRUE(otsu_thresholds(two, 2)[0] >= 12 && otsu_thresholds(two, 2)[0] < 90);
  EXPECT_EQ(otsu_thresholds(Bytes(5, 42), 2)[0], 42);
  EXPECT_EQ(otsu_thresholds(Bytes{}, 3).size(), 2u);
}

TEST(Components, LargestPartThroughFacesOnly) {
  // Two slices of 4 x 3: a part of four voxels over both slices, one of three, one that touches at a corner.
  const Bytes mask{1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0,  //
                   0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0};
  const Bytes expected{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                       0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(largest_component(mask, 4, 3, 2), expected);
  EXPECT_EQ(largest_component(Bytes(24, 0), 4, 3, 2), Bytes(24, 0));
}

TEST(Dice, OfIdenticalDisjointAndHalf) {
  const Bytes a{1, 1, 0, 0}, b{0, 0, 1, 1}, c{1, 0, 0, 0};
  EXPECT_EQ(dice(a, a), 1);
  EXPECT_EQ(dice(a, b), 0);
  EXPECT_NEAR(dice(a, c), 2.0 / 3, 1e-12);
  EXPECT_EQ(dice(Bytes(4, 0), Bytes(4, 0)), 1);
}

TEST(Destripe, RemovesConstantStripesAndKeepsWhatVariesAlongThem) {
  std::vector<float> stripes, rows;
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x) {
      stripes.push_back(x % 16 == 5 ? 30.0f : 0.0f);
      rows.push_back(static_cast<float>(20 * std::sin(2 * M_PI * y / 8)));
    }
  const auto energy = [](const std::vector<float>& image) {
    const float mean = std::accumulate(image.begin(), image.end(), 0.0f) / static_cast<float>(image.size());
    double sum = 0;
    for (float value : image) sum += std::pow(value - mean, 2);
    return sum;
  };
  EXPECT_LT(energy(remove_vertical_stripes(stripes, 64, 64, 5, 0.5)), 0.05 * energy(stripes));
  EXPECT_NEAR(energy(remove_vertical_stripes(rows, 64, 64, 5, 0.5)), energy(rows), 1e-3 * energy(rows));
}

TEST(Destripe, WithoutDampingTheWaveletsReproduceTheImage) {
  RandomStream random(1);
  std::vector<float> image;
  for (int i = 0; i < 96 * 64; ++i) image.push_back(static_cast<float>(random.normal()));
  // A damping of much less than a period touches the mean of a column of details alone; details of a random
  // image have nearly none.
  const std::vector<float> same = remove_vertical_stripes(image, 96, 64, 4, 1e-3);
  double change = 0, energy = 0;
  for (std::size_t i = 0; i < image.size(); ++i)
    change += std::pow(same[i] - image[i], 2), energy += std::pow(image[i], 2);
  EXPECT_LT(change, 0.1 * energy);
}

TEST(UnetBaseline, DestripingImprovesTheMask) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto& entry = data::find_generator("unet-256");
  const std::vector<std::string> settings{"case=stripes", "size=128"};
  entry.make(Options(entry.options, settings))->write({folder / "s.h5", 1, 8, &pool});
  const Report with =
      BaselineRun{"unet-256", folder / "s.h5", folder / "m.h5", folder / "m.html", {"case=stripes"}}();
  const Report without = BaselineRun{"unet-256", folder / "s.h5", {}, {}, {"case=stripes", "damping=0"}}();
  EXPECT_GT(metric(with, "dice_mean"), metric(without, "dice_mean"));
  EXPECT_GT(metric(with, "dice_mean"), 0.85);
  EXPECT_LT(metric(with, "conductivity_error"), 0.1);
  EXPECT_EQ(data::Hdf5File(folder / "m.h5").info("mask_pred").shape, (Shape{8, 128, 128}));
}

TEST(UnetBaseline, FindsLesionsByPatient) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto& entry = data::find_generator("unet-256");
  const std::vector<std::string> settings{"size=64", "slices=20"};
  entry.make(Options(entry.options, settings))->write({folder / "b.h5", 1, 20 * 6, &pool});
  const Report report = BaselineRun{"unet-256", folder / "b.h5", folder / "m.h5", folder / "m.html", {}}();
  EXPECT_GT(metric(report, "dice_mean"), 0.1);
  EXPECT_LE(metric(report, "dice_mean"), 1);
  const data::Hdf5File input(folder / "b.h5"), output(folder / "m.h5");
  // A true mask as image and as answer: the metric itself is right.
  EXPECT_EQ(output.info("mask_pred").shape, input.info("mask").shape);
  expect_error(ErrorCode::not_found, {"m.h5", "image"}, BaselineRun{"unet-256", folder / "m.h5", {}, {}, {}});
}

}  // namespace
}  // namespace superstep::baseline
