#include <gtest/gtest.h>

#include <numeric>

#include "superstep/baseline/cookiebox.h"
#include "superstep/data/cookiebox.h"
#include "superstep/data/generator.h"
#include "superstep/data/hdf5.h"
#include "tests/baseline/run_baseline.h"
#include "tests/data/expect_error.h"
#include "tests/data/scratch.h"

namespace superstep::baseline {
namespace {

void write_shots(const std::filesystem::path& path, std::uint64_t samples) {
  ThreadPool pool(2);
  const auto& entry = data::find_generator("cookienetae");
  const std::vector<std::string> settings{"part=test"};
  entry.make(Options(entry.options, settings))->write({path, 1, samples, &pool});
}

TEST(CookieboxBaseline, SmoothingKeepsTheElectronsOfAColumnOfEnergies) {
  RandomStream random(1);
  const auto counts = data::draw_histogram(random, data::density_of(data::draw_shot(random)));
  const std::vector<float> density = smooth_histogram(counts, {6, 0});
  for (std::size_t bin = 0; bin < 128; ++bin) {
    double before = 0, after = 0;
    for (std::size_t row = 0; row < 128; ++row)
      before += counts[row * 128 + bin] / 5.0, after += density[row * 128 + bin];
    EXPECT_NEAR(after, before, 1e-4 * (1 + before));
  }
}

TEST(CookieboxBaseline, TunedSmoothingBeatsTheHistogramAndNothing) {
  const ScratchFolder folder;
  write_shots(folder / "shots.h5", 24);
  const BaselineRun tuned{"cookienetae", folder / "shots.h5", folder / "out.h5", folder / "page.html", {}};
  const Report report = tuned();
  const auto with = [&](const char* angle, const char* energy) {
    return metric(BaselineRun{"cookienetae", folder / "shots.h5", {}, {}, {angle, energy}}(), "mse");
  };
  EXPECT_LT(metric(report, "mse"), 0.3 * with("angle-sigma=0", "energy-sigma=0"));  // the histogram itself
  EXPECT_LT(metric(report, "mse"), with("angle-sigma=20", "energy-sigma=6"));
  EXPECT_LT(metric(report, "peak_error"), 10);
  const data::Hdf5File output(folder / "out.h5");
  EXPECT_EQ(output.info("Y_pred").shape, (Shape{24, 128, 128}));
  EXPECT_TRUE(std::filesystem::exists(folder / "page.html"));
}

TEST(CookieboxBaseline, RefusesFilesWithoutHistograms) {
  const ScratchFolder folder;
  write_shots(folder / "shots.h5", 2);
  expect_error(ErrorCode::not_found, {"shots.h5", "X_train"},
               BaselineRun{"cookienetae", folder / "shots.h5", {}, {}, {"part=train"}});
  data::Hdf5Writer file(folder / "bare.h5");
  file.write("X_test", Tensor(ElementType::u8, {1, 128, 128}));
  file.close();
  expect_error(ErrorCode::bad_file, {"bare.h5", "no densities", "--set angle-sigma"},
               BaselineRun{"cookienetae", folder / "bare.h5", {}, {}, {}});
}

}  // namespace
}  // namespace superstep::baseline
