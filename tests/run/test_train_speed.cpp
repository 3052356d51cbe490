// How fast a sitting was, from known times.
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/run/train/train_speed.h"

namespace superstep::run {
namespace {

double speed_value(const std::vector<Metric>& metrics, std::string_view name) {
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  return found == metrics.end() ? -1 : found->value;
}

const std::vector<double> known_steps{9, 5, 4, 1, 2, 3};  // seconds; the first three are an epoch

SittingTimes known_times() {
  return {.batch = 10,
          .steps_an_epoch = 3,
          .step_seconds = known_steps,
          .elapsed = 30,
          .waited = 0.25,
          .flops = 600,
          .compile_seconds = 0.5,
          .to_solution = std::nullopt};
}

TEST(Speed, IsThatOfTheStepsAfterTheFirstEpoch) {
  const auto metrics = speed_metrics(known_times());
  EXPECT_EQ(speed_value(metrics, "step_time"), 2);  // the median of 1, 2, 3
  EXPECT_EQ(speed_value(metrics, "throughput"), 5);
  EXPECT_EQ(speed_value(metrics, "flops_rate"), 300);
  EXPECT_EQ(speed_value(metrics, "throughput_with_data"), 2);  // 60 samples in 30 s
  EXPECT_EQ(speed_value(metrics, "data_wait"), 0.25);
  EXPECT_EQ(speed_value(metrics, "compile_time"), 0.5);
  EXPECT_EQ(speed_value(metrics, "time_to_solution"), -1) << "a goal that was not reached has none";
}

TEST(Speed, OfASittingWithinTheFirstEpochIsThatOfItsLastStep) {
  SittingTimes few = known_times();
  few.step_seconds = std::span(known_steps).first(2);
  EXPECT_EQ(speed_value(speed_metrics(few), "step_time"), 5);
  few.step_seconds = std::span(known_steps).first(1);
  EXPECT_EQ(speed_value(speed_metrics(few), "step_time"), 9);
}

TEST(Speed, OfAGoalIsTheTimeOfAllSittings) {
  SittingTimes reached = known_times();
  reached.to_solution = 77;
  EXPECT_EQ(speed_value(speed_metrics(reached), "time_to_solution"), 77);
}

}  // namespace
}  // namespace superstep::run
