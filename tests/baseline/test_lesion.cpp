#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/random.h"
#include "superstep/baseline/imaging/bias_field.h"
#include "superstep/baseline/imaging/lesion.h"
#include "superstep/baseline/imaging/masked_images.h"
#include "superstep/file/tiff.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"

namespace superstep::baseline {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr int width = 64, height = 64, slices = 12;

// Blobs of two tissues with noise under a gain that varies by exp(+-strength).
struct Phantom {
  Bytes volume, mask;
  std::vector<double> log_gain;
};
Phantom phantom(double strength) {
  RandomStream random(3, 0);
  Phantom made;
  for (int z = 0; z < slices; ++z)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const bool inside = std::hypot(x - 31.5, y - 31.5) < 30;
        const double tissue = std::sin(0.5 * x) * std::cos(0.4 * y + 0.3 * z) > 0 ? 80 : 130;
        const double gain = strength * (std::sin(2.0 * x / width + 0.5) * std::cos(2.0 * y / height) - 0.4);
        const double value = inside ? tissue * std::exp(gain) + 2 * random.normal() : 0;
        made.volume.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)));
        made.mask.push_back(inside);
        made.log_gain.push_back(gain);
      }
  return made;
}

struct Agreement {
  double deviation = 0, error = 0;  // of the true log gain about its mean, and of found less true
};
Agreement compare(const Phantom& made, const std::vector<float>& gain) {
  double count = 0, mean_true = 0, mean_found = 0;
  for (std::size_t i = 0; i < gain.size(); ++i)
    if (made.mask[i]) ++count, mean_true += made.log_gain[i], mean_found += std::log(double{1} * gain[i]);
  Agreement result;
  for (std::size_t i = 0; i < gain.size(); ++i) {
    if (!made.mask[i]) continue;
    const double known = made.log_gain[i] - mean_true / count,
                 found = std::log(double{1} * gain[i]) - mean_found / count;
    result.deviation += known * known / count;
    result.error += (found - known) * (found - known) / count;
  }
  return {std::sqrt(result.deviation), std::sqrt(result.error)};
}

TEST(BiasField, IsFoundFromTheImageAlone) {
  const Phantom made = phantom(0.4);
  const auto gain = estimate_gain(made.volume, made.mask, width, height, slices, {.stride = 2});
  const Agreement agreement = compare(made, gain);
  std::printf("log gain varies by %.3f, found to %.3f\n", agreement.deviation, agreement.error);
  EXPECT_GT(agreement.deviation, 0.1);
  EXPECT_LT(agreement.error, 0.3 * agreement.deviation);
  EXPECT_EQ(gain[0], 1);  // outside the mask
}

TEST(BiasField, IsFlatWhereThereIsNone) {
  const Phantom made = phantom(0);
  const Agreement agreement =
      compare(made, estimate_gain(made.volume, made.mask, width, height, slices, {.stride = 2}));
  EXPECT_LT(agreement.error, 0.03);
  for (const float gain : estimate_gain(Bytes(100, 5), Bytes(100, 1), 10, 10, 1, {})) EXPECT_EQ(gain, 1);
}

TEST(GrowRegion, TakesWhatIsLikeItAndConnected) {
  //                  seed        like it   darker  like it, but not connected
  const Bytes values{100, 104, 96, 97, 60, 98};
  Bytes region{1, 1, 1, 0, 0, 0};
  const Bytes all(6, 1);
  EXPECT_EQ(grow_region(values, all, region, 6, 1, 1, 2, 4), (Bytes{1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(grow_region(values, all, region, 6, 1, 1, 50, 4), (Bytes{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(grow_region(values, Bytes{1, 1, 1, 0, 1, 1}, region, 6, 1, 1, 50, 4), (Bytes{1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(grow_region(values, all, Bytes(6, 0), 6, 1, 1, 2, 4), Bytes(6, 0));
}

TEST(MaskedImages, OfAFolderAreThoseOfTheFile) {
  const ScratchFolder folder;
  const std::vector<std::string> small{"size=32", "slices=20"};
  generate("unet-256", folder / "b.h5", 50, small);
  generate("unet-256", folder / "kaggle_3m", 50, small);
  const MaskedImages file(folder / "b.h5"), tiffs(folder / "kaggle_3m");
  EXPECT_EQ(file.volumes(), tiffs.volumes());
  ASSERT_EQ(tiffs.volumes().size(), 3u);
  EXPECT_EQ(tiffs.width(), 32);
  for (int which = 0; which < 3; ++which)
    EXPECT_EQ(file.channel(which, 10, 30), tiffs.channel(which, 10, 30)) << which;
  EXPECT_EQ(file.masks(0, 50), tiffs.masks(0, 50));
  EXPECT_NE(file.channel(0, 0, 20), tiffs.channel(1, 0, 20));
  const Report a = run_baseline("unet-256", folder / "b.h5"),
               b = run_baseline("unet-256", folder / "kaggle_3m", folder / "masks.h5");
  EXPECT_EQ(metric(a, "dice_mean"), metric(b, "dice_mean"));
}

TEST(MaskedImages, NamesTheFileThatIsWrong) {
  const ScratchFolder folder;
  const auto root = folder / "set";
  const auto refused = [&](const std::string& file, const std::string& message) {
    expect_error(ErrorCode::bad_file, {file, message}, [&] {
      const MaskedImages images(root);
      images.channel(0, 0, images.count());
      if (images.labelled()) images.masks(0, images.count());
    });
  };
  const auto write = [&](const char* name, int side, int channels) {
    data::TiffWriter file(root / "a" / name, data::TiffCompression::none);
    file.add_page(Bytes(static_cast<std::size_t>(side * side * channels), 9), side, side, channels);
    file.close();
  };
  std::filesystem::create_directories(root / "a");
  refused("set", "has no folders with images");
  write("a_1.tif", 8, 3);
  write("a_2.tif", 8, 3);
  EXPECT_FALSE(MaskedImages(root).labelled());
  write("a_1_mask.tif", 8, 1);
  refused("a_2.tif", "has no mask");
  write("a_2_mask.tif", 8, 3);
  refused("a_2_mask.tif", "is no mask");
  write("a_2_mask.tif", 8, 1);
  write("a_2.tif", 9, 3);
  refused("a_2.tif", "the first image has 8 x 8");
  write("a_2.tif", 8, 1);
  refused("a_2.tif", "three 8-bit channels");
}

}  // namespace
}  // namespace superstep::baseline
