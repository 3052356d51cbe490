// Learning while serving: signs of drift against their closed forms, who is better, and whole cycles.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/edge/learn/child.h"
#include "superstep/edge/learn/judge.h"
#include "superstep/edge/learn/learner.h"
#include "superstep/edge/learn/phases.h"
#include "tests/edge/models.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::edge {
namespace {

std::vector<double> uniform(std::uint64_t stream, std::size_t count, double shift = 0) {
  RandomStream random(11, stream);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(random.uniform() + shift);
  return values;
}

// Of two samples by hand: {1, 2, 3} and {2.5, 3.5, 4.5} are 2/3 apart; the tail at x is known.
TEST(Drift, ComparesDistributions) {
  EXPECT_DOUBLE_EQ(kolmogorov_smirnov({1, 2, 3}, {2.5, 3.5, 4.5}).distance, 2.0 / 3);
  EXPECT_DOUBLE_EQ(kolmogorov_smirnov({1, 2}, {1, 2}).distance, 0);
  EXPECT_DOUBLE_EQ(kolmogorov_smirnov({1, 1, 1}, {2, 2}).distance, 1);
  // n = m = 200, 0.136 apart: Smirnov's table has 1.36 sqrt(2 / n) for a probability of 0.05.
  std::vector<double> a(200), b(200);
  std::iota(a.begin(), a.end(), 0);
  std::iota(b.begin(), b.end(), 0);
  for (double& value : b) value += 27.5;
  const KolmogorovSmirnov found = kolmogorov_smirnov(a, b);
  EXPECT_NEAR(found.distance, 0.14, 1e-9);
  EXPECT_NEAR(found.probability, 0.037, 0.006);
}

// Under no drift the probability is uniform: refused at a level of 0.05 in about 5 of 100.
TEST(Drift, KeepsItsLevel) {
  int refused = 0;
  for (std::uint64_t i = 0; i < 400; ++i)
    refused += kolmogorov_smirnov(uniform(2 * i, 150), uniform(2 * i + 1, 150)).probability < 0.05;
  EXPECT_GT(refused, 6);
  EXPECT_LT(refused, 36);
  EXPECT_LT(kolmogorov_smirnov(uniform(1, 150), uniform(2, 150, 0.3)).probability, 1e-4);
}

TEST(Drift, RefusesAsHolmHasIt) {
  const double probabilities[] = {0.01, 0.04, 0.03, 0.005};  // Holm's own order: 4 x .005, 3 x .01, 2 x .03
  EXPECT_EQ(holm(probabilities, 0.05), (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(holm(probabilities, 0.001), (std::vector<bool>{false, false, false, false}));
}

TEST(Drift, HearsARiseOfTheMean) {
  PageHinkley trend(0.05, 1);
  RandomStream random(5, 0);
  for (int i = 0; i < 200; ++i) ASSERT_FALSE(trend.add(1 + 0.05 * (random.uniform() - 0.5))) << i;
  int heard = 0;
  while (!trend.add(1.3)) ASSERT_LT(++heard, 20);
  trend.forget();
  for (int i = 0; i < 20; ++i) ASSERT_FALSE(trend.add(1.3));
}

TEST(Drift, LooksAtFrames) {
  std::vector<float> frame(16, 0);
  frame[5] = 3;  // (1, 1)
  const FrameFeatures features = features_of(frame, 4);
  EXPECT_EQ(features[0], 3);
  EXPECT_EQ(features[1], 3);
  EXPECT_NEAR(features[2], std::hypot(0.5, 0.5), 1e-12);
  EXPECT_EQ(features[3], 0);
  EXPECT_EQ(features[4], 15.0 / 16);
}

TEST(Judge, BoundsAGain) {
  std::vector<double> before = uniform(1, 200), after = before;
  for (std::size_t i = 0; i < after.size(); ++i) after[i] -= 0.1 + 0.05 * std::sin(static_cast<double>(i));
  const double gain = lower_bound_of_gain(before, after, 1);
  EXPECT_GT(gain, 0.09);
  EXPECT_LT(gain, 0.1);
  EXPECT_LT(lower_bound_of_gain(before, uniform(2, 200), 1), 0) << "no gain";
  EXPECT_NEAR(standard_error_of_gain(before, after), 0.05 / std::sqrt(2.0) / std::sqrt(200.0), 2e-4);
}

// What is served is taken back when it is worse than chance would have it, not when it is better or the same.
TEST(Judge, TellsWhatIsWorse) {
  const std::vector<double> before = uniform(1, 200);
  std::vector<double> more = before, less = before;
  for (std::size_t i = 0; i < before.size(); ++i) {
    more[i] += 0.1 + 0.05 * std::sin(static_cast<double>(i));
    less[i] -= 0.1 + 0.05 * std::sin(static_cast<double>(i));
  }
  EXPECT_TRUE(is_worse(more, before));
  EXPECT_FALSE(is_worse(less, before));
  EXPECT_FALSE(is_worse(before, before));
  EXPECT_FALSE(is_worse(uniform(2, 200), before)) << "by chance";
}

TEST(VersionFolder, KeepsChoosesAndGoesBack) {
  const ScratchFolder folder;
  const VersionFolder versions(folder / "");
  const auto made = [&](const char* words) {
    std::filesystem::create_directories(folder / "run");
    write_file_atomically(folder / "run/weights", words);
    return folder / "run";
  };
  const auto weights = [&] { return read_text_file(std::filesystem::path(*versions.present()) / "weights"); };
  EXPECT_FALSE(versions.present().has_value());
  versions.keep("a", made("first"), {{"version", "a"}});
  EXPECT_FALSE(versions.present().has_value()) << "kept, not chosen";
  versions.choose("a");
  EXPECT_EQ(weights(), "first");
  std::filesystem::create_directories(folder /
                                      "versions/b/run/half");  // begun by who was killed: no manifest
  versions.choose("b");
  EXPECT_FALSE(versions.present().has_value()) << "half a version is none";
  versions.keep("b", made("second"), {{"version", "b"}});
  versions.choose("b");
  EXPECT_EQ(weights(), "second");
  versions.keep("b", made("again"), {{"version", "b"}});
  EXPECT_EQ(weights(), "second") << "whole versions stay as they are";
  versions.choose("a");
  EXPECT_EQ(weights(), "first");
  versions.choose("what it was begun with");
  EXPECT_FALSE(versions.present().has_value());
}

TEST(Judge, MeasuresPhasesAsAngles) {
  LearnScan scan{.name = "s",
                 .window = 4,
                 .numbers = {0},
                 .patterns = std::vector<float>(16, 0),
                 .positions = {{0, 0}},
                 .labels = std::vector<float>(16, 3.1F),
                 .method = ""};
  const std::vector<LearnSample> samples{{&scan, 0}};
  const std::vector<float> answers(16, -3.1F);
  EXPECT_NEAR(phase_errors(answers, samples, 2)[0], 2 * (std::acos(-1.0) - 3.1), 1e-5);
  turn(scan, turn_between(answers, scan, 2));
  EXPECT_NEAR(phase_errors(answers, samples, 2)[0], 0, 1e-6);
}

TEST(Scan, KeepsATenthAside) {
  LearnScan scan{.name = "s", .window = 1};
  for (int i = 0; i < 1000; ++i) {
    const double angle = 2.399963 * i, radius = std::sqrt(i);
    scan.positions.emplace_back(radius * std::sin(angle), radius * std::cos(angle));
    scan.numbers.push_back(static_cast<std::uint64_t>(i));
  }
  std::size_t held_out = 0;
  for (std::size_t i = 0; i < scan.size(); ++i) held_out += scan.is_held_out(i);
  EXPECT_NEAR(static_cast<double>(held_out), 100, 15);
}

TEST(Child, IsPausedEndedAndHeard) {
  const ScratchFolder folder;
  const auto never = [] { return false; };
  EXPECT_TRUE(run_child({"true"}, folder / "e", {.seconds = 10}, never, never).done);
  const ChildOutcome failed =
      run_child({"sh", "-c", "echo it broke >&2; exit 3"}, folder / "e", {.seconds = 10}, never, never);
  EXPECT_FALSE(failed.done);
  EXPECT_EQ(failed.why, "ended with 3: it broke");
  const ChildOutcome hung = run_child({"sleep", "60"}, folder / "e", {.seconds = 0.2}, never, never);
  EXPECT_FALSE(hung.done);
  EXPECT_LT(hung.seconds, 10);
  const ChildOutcome killed =
      run_child({"sh", "-c", "kill -9 $$"}, folder / "e", {.seconds = 10}, never, never);
  EXPECT_EQ(killed.why, "ended by signal 9");
  int looks = 0;
  const ChildOutcome paused = run_child(
      {"sleep", "0.3"}, folder / "e", {.seconds = 10}, [&] { return ++looks > 3 && looks < 30; }, never);
  EXPECT_TRUE(paused.done);
  EXPECT_GT(paused.paused, 0.1);
}

TEST(Learner, BeginsWithARunOfItsWorkload) {
  const ScratchFolder folder;
  ModelService model("m", {.what = "mlp"}, small_service(1, 1));
  expect_error(ErrorCode::unsupported, {"run's folder"}, [&] { Learner({.folder = folder / "l"}, model); });
}

}  // namespace
}  // namespace superstep::edge
