// Pictures from overlapping windows: the object where it is covered, with the same bits for any order.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "superstep/base/random.h"
#include "superstep/edge/live/live.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/tiff.h"
#include "tests/edge/models.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::edge {
namespace {

constexpr std::int64_t extent = 300, window = 32;
constexpr double pixel = 10e-9;

float object_at(std::int64_t y, std::int64_t x) {
  return static_cast<float>(std::sin(0.05 * static_cast<double>(y)) *
                            std::cos(0.08 * static_cast<double>(x)));
}

struct Window {
  std::pair<double, double> position;
  std::vector<float> values;
};

std::vector<Window> windows_of(std::size_t count, double fraction = 0) {
  std::vector<Window> windows;
  RandomStream random(3, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto y = static_cast<std::int64_t>(random.below(extent - window)),
               x = static_cast<std::int64_t>(random.below(extent - window));
    Window one{.position = {(static_cast<double>(y + window / 2) + fraction) * pixel,
                            (static_cast<double>(x + window / 2) + fraction) * pixel},
               .values = {}};
    for (std::int64_t row = 0; row < window; ++row)
      for (std::int64_t column = 0; column < window; ++column)
        one.values.push_back(object_at(y + row, x + column));
    windows.push_back(std::move(one));
  }
  return windows;
}

TEST(Canvas, GivesTheObjectWhereItIsCovered) {
  StitchCanvas canvas({.pixel = pixel, .crop = 12, .phase_mean = false});
  for (const Window& one : windows_of(900)) EXPECT_TRUE(canvas.add(one.values, window, one.position));
  const StitchedPicture picture = canvas.picture();
  double worst = 0;
  std::size_t covered = 0;
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x) {
      const auto at = static_cast<std::size_t>(y * picture.width + x);
      EXPECT_EQ(std::isnan(picture.mean[at]), picture.weight[at] == 0);
      if (picture.weight[at] == 0) continue;
      ++covered;
      worst = std::max(worst, std::abs(static_cast<double>(picture.mean[at]) -
                                       static_cast<double>(object_at(picture.top + y, picture.left + x))));
      EXPECT_LT(picture.spread[at], 1e-3);
    }
  EXPECT_LT(worst, 1e-6);
  EXPECT_GT(covered, 40000U);
}

TEST(Canvas, HasTheSameBitsForAnyOrder) {
  std::vector<Window> windows = windows_of(400, 0.37);
  StitchCanvas one({.pixel = pixel, .crop = 12}), other({.pixel = pixel, .crop = 12});
  for (const Window& window_now : windows) one.add(window_now.values, window, window_now.position);
  RandomStream random(9, 0);
  for (std::size_t i = windows.size(); i > 1; --i) std::swap(windows[i - 1], windows[random.below(i)]);
  for (const Window& window_now : windows) other.add(window_now.values, window, window_now.position);
  const StitchedPicture a = one.picture(), b = other.picture();
  ASSERT_EQ(a.mean.size(), b.mean.size());
  EXPECT_EQ(std::memcmp(a.mean.data(), b.mean.data(), a.mean.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(a.spread.data(), b.spread.data(), a.mean.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(a.weight.data(), b.weight.data(), a.mean.size() * sizeof(float)), 0);
}

// A constant of each window goes with its mean; without that it stays.
TEST(Canvas, TakesTheMeanOfAPhase) {
  std::vector<float> values(window * window);
  for (const bool removed : {true, false}) {
    StitchCanvas canvas({.pixel = pixel, .crop = 12, .phase_mean = removed});
    for (const float constant : {0.5F, -1.5F}) {
      std::ranges::fill(values, constant);
      canvas.add(values, window, {1e-6, 1e-6});
    }
    const StitchedPicture picture = canvas.picture();
    EXPECT_NEAR(picture.mean[0], removed ? 0 : -0.5, 1e-6);
    EXPECT_NEAR(picture.spread[0], removed ? 0 : 1, 1e-6);
  }
}

TEST(Canvas, RefusesWhatIsNoPlaceAndNoNumber) {
  StitchCanvas canvas({.pixel = pixel, .crop = 12, .most_tiles = 4});
  std::vector<float> values(window * window, 1);
  EXPECT_TRUE(canvas.add(values, window, {-1e-6, -1e-6}));
  EXPECT_FALSE(canvas.add(values, window, {1e9, 0}));
  EXPECT_TRUE(canvas.add(values, window, {0, 0}));  // four tiles meet there
  EXPECT_FALSE(canvas.add(values, window, {1e-3, 1e-3})) << "a fifth tile";
  values[window * window / 2 + window / 2] = NAN;
  EXPECT_FALSE(canvas.add(values, window, {-1e-6, -1e-6}));
  EXPECT_EQ(canvas.added(), 2U);
  for (const char* bad : {"pixel", "pixel=0", "crop=0", "crop=x", "mean=no", "what=1", ","})
    EXPECT_THROW(stitch_settings_from_text(bad), Error) << bad;
  EXPECT_EQ(stitch_settings_from_text("pixel=5nm,crop=20,mean=kept").crop, 20);
}

TEST(Live, WritesPicturesThatOthersRead) {
  const ScratchFolder folder;
  ModelService model("m", {.what = "ptychonn-128", .shapes = {}}, small_service(1, 1));
  const auto version = model.current();
  Live live(
      {.stitch = {.pixel = pixel, .crop = 12, .phase_mean = false}, .folder = folder / "out", .model = "m"},
      version->ports());
  std::vector<Tensor> outputs = make_outputs(version->ports(), 1);
  for (std::uint64_t frame = 0; frame < 20; ++frame) {
    std::ranges::fill(outputs[0].as<float>(), static_cast<float>(frame));
    live.add("scan", frame, std::pair(1e-6 + 3 * pixel * static_cast<double>(frame), 1e-6), outputs,
             *version);
  }
  live.add("scan", 20, std::nullopt, outputs, *version);
  EXPECT_EQ(live.state().added, 20U);
  EXPECT_EQ(live.state().unplaced, 1U);
  EXPECT_TRUE(live.state().drawn.empty());
  EXPECT_FALSE(live.png(Live::Shown::mean).empty());
  const Live::State::Range drawn = live.state().drawn.at(Live::Shown::mean);
  EXPECT_EQ(drawn.low, 0);
  EXPECT_EQ(drawn.high, 19);
  EXPECT_EQ(drawn.width, 12);
  EXPECT_EQ(drawn.height, 12 + 3 * 19);
  EXPECT_EQ(live.state().pixel, pixel);
  live.close("scan");
  const data::Hdf5File file(folder / "out/scan.cxi");
  const Tensor mean = file.read("entry_1/image_1/data", ElementType::f32);
  EXPECT_EQ(mean.shape(), (Shape{12 + 3 * 19, 12}));
  EXPECT_EQ(mean.at(0), 0);
  EXPECT_EQ(mean.at(mean.element_count() - 1), 19);
  EXPECT_EQ(file.read_strings("entry_1/definition")[0], "NXcxi_ptycho");
  EXPECT_EQ(file.info("entry_1/sample_1/geometry_1/translation").shape, (Shape{20, 3}));
  const Tensor picture = data::read_tiff(folder / "out/scan.tiff");
  EXPECT_EQ(picture.at(0), 0);
  EXPECT_EQ(picture.at(picture.element_count() - 1), 255);
  ModelService flat("f", {.what = "mlp"}, small_service(1, 1));
  expect_error(ErrorCode::unsupported, {"--stitch"}, [&] { Live({.model = "f"}, flat.current()->ports()); });
}

}  // namespace
}  // namespace superstep::edge
