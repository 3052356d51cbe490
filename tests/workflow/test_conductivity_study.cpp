// The study of striped cathodes: intervals that hold what they promise, and a small study that is stopped
// many times.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "superstep/base/file.h"
#include "superstep/base/progress.h"
#include "superstep/base/random.h"
#include "superstep/base/watch.h"
#include "superstep/file/csv.h"
#include "superstep/workflow/conductivity/answers.h"
#include "superstep/workflow/conductivity/study.h"
#include "superstep/workflow/workflow.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::workflow {
namespace {

namespace fs = std::filesystem;

TEST(Ensembles, HaveMeanAndSpreadOfTheirMembers) {
  const std::vector<std::vector<double>> members{{1, 5}, {2, 5}, {6, 5}};
  const Ensemble ensemble = ensemble_of(members);
  EXPECT_DOUBLE_EQ(ensemble.mean[0], 3);
  EXPECT_DOUBLE_EQ(ensemble.spread[0], std::sqrt((4 + 1 + 9) / 2.0));
  EXPECT_DOUBLE_EQ(ensemble.mean[1], 5);
  EXPECT_DOUBLE_EQ(ensemble.spread[1], 0);
}

// Two sections of four pixels: of the first one pixel conducts that should not, and makes a path; of the
// second two do not that should, and its path is lost. A way that leaves nothing has no error.
TEST(Stripes, CountWhatTheyTurnAndMove) {
  const std::vector<std::uint8_t> truth{1, 0, 0, 1, 1, 1, 1, 0}, found{1, 1, 0, 1, 0, 0, 1, 0};
  Sections test{.images = Tensor::from<std::uint8_t>({2, 2, 2}, truth), .sigma = {1, 1}, .ratio = {0, 0.5}};
  const Way way{.name = "a way", .ratio = {0.25, 0}, .wrong = {0.25, 0.5}, .images = found};
  const StripeErrors errors = stripe_errors(test, way);
  EXPECT_DOUBLE_EQ(errors.conducting, 0.125);
  EXPECT_DOUBLE_EQ(errors.insulating, 0.25);
  EXPECT_DOUBLE_EQ(errors.bias, -0.125);
  EXPECT_DOUBLE_EQ(errors.error, 0.375);
  EXPECT_DOUBLE_EQ(errors.paths_made, 0.5);
  EXPECT_DOUBLE_EQ(errors.paths_lost, 0.5);
  EXPECT_DOUBLE_EQ(errors.rank_correlation, 1);
  const std::string table = table_of_stripes(test, way);
  EXPECT_TRUE(contains(table, "25.00 %")) << table;
  const Way none{.name = "none", .ratio = test.ratio, .wrong = {0, 0}, .images = truth};
  EXPECT_EQ(stripe_errors(test, none).error, 0);
  EXPECT_EQ(stripe_errors(test, none).conducting + stripe_errors(test, none).insulating, 0);
}

struct Drawn {
  Ensemble ensemble;
  std::vector<double> truth;
};

// Errors in proportion to a spread that varies tenfold; `larger` times what the spread says.
Drawn drawn(std::uint64_t seed, std::size_t count, double larger = 1) {
  Drawn some;
  RandomStream random(seed);
  for (std::size_t k = 0; k < count; ++k) {
    some.ensemble.mean.push_back(random.uniform());
    some.ensemble.spread.push_back(random.uniform(0.01, 0.1));
    some.truth.push_back(some.ensemble.mean[k] + larger * some.ensemble.spread[k] * random.normal());
  }
  return some;
}

// Whatever the errors are, as many of unseen samples lie inside as was asked for: within three standard
// errors of both the known and the unseen ones. Unseen errors of thrice the size do not.
TEST(Intervals, HoldTheShareThatWasAskedFor) {
  const Drawn known = drawn(1, 2000, 5), unseen = drawn(2, 2000, 5), worse = drawn(2, 2000, 15);
  const Calibration calibration(known.ensemble, known.truth);
  for (const double level : {0.5, 0.8, 0.9, 0.95}) {
    const double inside = intervals_of(calibration, unseen.ensemble, unseen.truth, level).inside;
    EXPECT_NEAR(inside, level, 3 * std::sqrt(2 * level * (1 - level) / 2000));
    EXPECT_LT(intervals_of(calibration, worse.ensemble, worse.truth, level).inside, level - 0.2);
  }
  const Intervals intervals = intervals_of(calibration, unseen.ensemble, unseen.truth, 0.9);
  const auto at = std::ranges::find(intervals.levels, 0.9) - intervals.levels.begin();
  EXPECT_EQ(intervals.covered[static_cast<std::size_t>(at)], intervals.inside);
  for (std::size_t k = 1; k < intervals.covered.size(); ++k)
    EXPECT_GE(intervals.covered[k], intervals.covered[k - 1]);
  for (std::size_t k = 1; k < intervals.half_width.size(); ++k)
    EXPECT_EQ(intervals.half_width[k] < intervals.half_width[k - 1],
              unseen.ensemble.spread[k] < unseen.ensemble.spread[k - 1]);
}

TEST(Intervals, AreAsWideAsTheRankSays) {
  // Scores are |truth - mean| / (spread + mean spread) = 1, 2, 3, 4 halves.
  const Ensemble known{{0, 0, 0, 0}, {1, 1, 1, 1}};
  const std::vector<double> truth{1, -2, 3, -4};
  const Calibration calibration(known, truth);
  EXPECT_DOUBLE_EQ(calibration.factor(0.4), 1);     // rank ceil(0.4 x 5) = 2
  EXPECT_DOUBLE_EQ(calibration.factor(0.41), 1.5);  // 3
  EXPECT_DOUBLE_EQ(calibration.factor(0.99), 2);    // beyond the last: the last
  EXPECT_DOUBLE_EQ(calibration.half_width(3, 0.4), 4);
  expect_error(ErrorCode::invalid_argument, {"no sections"}, [&] { Calibration({}, {}); });
}

// --- the whole study

class ConductivityStudies : public ::testing::Test {
 protected:
  void SetUp() override { set_quiet(true); }
  void TearDown() override {
    set_interrupt_check({});
    set_quiet(false);
  }

  Outcome study(const std::string& folder, const std::vector<std::string>& more = {}) {
    const Entry& entry = find_workflow("conductivity");
    std::vector<std::string> settings{"side=32",           "samples=60", "test=10",   "micrographs=30",
                                      "denoiser-epochs=2", "epochs=2",   "members=2", "width=2"};
    settings.insert(settings.end(), more.begin(), more.end());
    return entry.run({.out = folder_ / folder, .threads = 2}, Options(entry.options, settings));
  }

  const ScratchFolder folder_;
};

double value_of(const Outcome& outcome, const std::string& name) {
  const auto found = std::ranges::find(outcome.metrics, name, &Metric::name);
  return found == outcome.metrics.end() ? std::nan("") : found->value;
}

TEST_F(ConductivityStudies, SayWhatEachStepCosts) {
  const Outcome outcome = study("once");
  EXPECT_TRUE(contains(outcome.text, "U-Net, then the networks"));
  for (const char* name : {"striped_label_error", "destriped_label_error", "denoised_label_error",
                           "interval_half_width", "solve_time", "network_time", "mae", "mae_of_section"}) {
    EXPECT_TRUE(std::isfinite(value_of(outcome, name))) << name;
    EXPECT_GT(value_of(outcome, name), 0) << name;
  }
  for (const char* name :
       {"coverage", "striped_pixel_error", "denoised_pixel_error", "denoised_path_error"}) {
    EXPECT_GE(value_of(outcome, name), 0) << name;
    EXPECT_LE(value_of(outcome, name), 1) << name;
  }
  EXPECT_TRUE(contains(read_text_file(outcome.page), "Answers with their intervals"));
  data::CsvReader table(folder_ / "once/test.csv");
  int rows = 0;
  for (; table.next(); ++rows) {
    const auto cell = [&](const char* name) { return table.number(table.column(name)); };
    EXPECT_GE(cell("low"), 0);
    EXPECT_LE(cell("low"), cell("high"));
    EXPECT_LE(cell("high"), cell("sigma") * (1 + 1e-12));
    EXPECT_LE(cell("sigma_eff_true"), cell("sigma") * (1 + 1e-6));
  }
  EXPECT_EQ(rows, 10);
  EXPECT_EQ(rows * value_of(outcome, "coverage"), std::round(rows * value_of(outcome, "coverage")));
}

// The ratio depends on the section alone, unless the networks are shown the conductor.
TEST_F(ConductivityStudies, HaveOneRatioForEveryConductor) {
  const Outcome image = study("image"), both = study("both", {"sees=both"});
  EXPECT_LT(value_of(image, "scalar_change_largest"), 1e-6);
  EXPECT_LT(value_of(image, "scalar_change_relative"), 1e-5);
  EXPECT_GT(value_of(both, "scalar_change_largest"), 1e-6);
}

// Stopped again and again, wherever it asks, it ends with the same answers.
TEST_F(ConductivityStudies, EndAlikeHoweverOftenTheyAreStopped) {
  study("whole");
  int stops = 0;
  for (int allowed = 3, calls = 0;; allowed += allowed / 2, ++calls) {
    ASSERT_LT(calls, 40);
    std::atomic<int> asked{0};
    set_interrupt_check([&] { return ++asked > allowed; });
    try {
      study("stopped");
      break;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::interrupted) << error.what();
      ++stops;
    }
    set_interrupt_check({});
  }
  EXPECT_GT(stops, 5);
  EXPECT_EQ(read_text_file(folder_ / "stopped/test.csv"), read_text_file(folder_ / "whole/test.csv"));
}

TEST_F(ConductivityStudies, RefuseWhatTheirNetworksRefuse) {
  expect_error(ErrorCode::invalid_argument, {"100 pixels cannot be halved"},
               [&] { study("bad", {"side=100"}); });
  EXPECT_FALSE(fs::exists(folder_ / "bad"));
  expect_error(ErrorCode::invalid_argument, {"members"}, [&] { study("bad", {"members=1"}); });
}

}  // namespace
}  // namespace superstep::workflow
