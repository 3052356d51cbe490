#include <gtest/gtest.h>

#include <numeric>

#include "superstep/baseline/xray/cookiebox.h"
#include "superstep/baseline/xray/cookiebox_fit.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/xray/cookiebox.h"
#include "tests/baseline/run_baseline.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

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

TEST(CookieboxBaseline, PeaksAreSoughtWhereThereAreAny) {
  std::vector<float> truth(128 * 128, 0.01f), found(128 * 128, 0);
  EXPECT_FALSE(peak_energy_error(truth, found));  // a shot without a pulse has no peak to be off from
  truth[5 * 128 + 60] = 1, found[5 * 128 + 64] = 1;
  truth[9 * 128 + 20] = 1, found[9 * 128 + 20] = 1;
  EXPECT_EQ(peak_energy_error(truth, found), 2);  // of two rows one is off by four bins
}

struct KnownShot {
  data::Shot shot;
  std::vector<std::uint8_t> counts;
};
KnownShot known_shot(std::uint64_t seed, std::vector<data::Spike> spikes) {
  KnownShot made;
  made.shot = {std::move(spikes), 12, 3.2, 0.6, 1.1};
  RandomStream random(seed);
  made.counts = data::draw_histogram(random, data::density_of(made.shot));
  return made;
}

TEST(ShotFit, FindsTheShot) {
  const KnownShot known = known_shot(3, {{60, 0.7, 1.2}, {70, 3.9, 0.8}});
  const ShotFit fit = fit_shot(known.counts);
  ASSERT_EQ(fit.shot.spikes.size(), 2u);
  EXPECT_NEAR(fit.shot.kick, 12, 0.1);
  EXPECT_NEAR(fit.shot.width, 3.2, 0.1);
  EXPECT_NEAR(fit.shot.polarization, 0.6, 0.05);
  EXPECT_NEAR(std::remainder(fit.shot.direction - 1.1, 2 * M_PI), 0, 0.1);
  const bool swapped = fit.shot.spikes[0].amplitude < fit.shot.spikes[1].amplitude;
  for (std::size_t k = 0; k < 2; ++k) {
    const data::Spike &found = fit.shot.spikes[swapped ? 1 - k : k], &own = known.shot.spikes[k];
    EXPECT_NEAR(found.centre, own.centre, 0.2);
    EXPECT_NEAR(std::remainder(found.phase - own.phase, 2 * M_PI), 0, 0.03);
    EXPECT_NEAR(found.amplitude, own.amplitude, 0.08);
  }
  EXPECT_NEAR(fit.background, known.shot.background(), 0.3 * known.shot.background());
  // The fit is at least as likely as the truth, by about half a unit for each of 11 parameters.
  ShotFit truth{known.shot, known.shot.background(), 0};
  const auto density = density_of(truth);
  double deviance = 0;
  for (std::size_t i = 0; i < density.size(); ++i) {
    const double m = 5.0 * density[i], n = known.counts[i];
    deviance += 2 * (m - n + (n > 0 ? n * std::log(n / m) : 0));
  }
  EXPECT_LT(fit.deviance, deviance);
  EXPECT_GT(fit.deviance, deviance - 40);
}

TEST(ShotFit, TakesNoSpikeOutOfNoise) {
  RandomStream random(1);
  std::vector<std::uint8_t> counts(128 * 128);
  for (auto& count : counts) count = static_cast<std::uint8_t>(random.poisson(5 * 0.002));
  const ShotFit fit = fit_shot(counts);
  EXPECT_TRUE(fit.shot.spikes.empty());
  EXPECT_NEAR(fit.background, 0.002, 0.0004);
  EXPECT_TRUE(fit_shot(std::vector<std::uint8_t>(128 * 128, 0)).shot.spikes.empty());
}

TEST(ShotFit, IsBetterThanSmoothing) {
  const ScratchFolder folder;
  write_shots(folder / "shots.h5", 8);
  const auto mse = [&](const char* method) {
    return metric(BaselineRun{"cookienetae", folder / "shots.h5", {}, {}, {method}}(), "mse");
  };
  EXPECT_LT(mse("method=fit"), 0.5 * mse("method=smooth"));
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
