// Learning rates over a run: every kind of schedule against its closed form.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/run/model.h"
#include "superstep/run/train/schedule.h"

namespace superstep::run {
namespace {

TEST(Schedules, WarmUpThenHalfACosine) {
  const Schedule cosine{.kind = Schedule::Kind::cosine, .peak = 1, .final_share = 0.1, .warm_up_share = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 0, 100), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 9, 100), 1);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 10, 100), 1);
  EXPECT_NEAR(learning_rate(cosine, 55, 100), 0.55, 1e-12);  // half way down
  EXPECT_NEAR(learning_rate(cosine, 100, 100), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(cosine, 5000, 100), 0.1, 1e-12) << "and stays there";
  for (int step = 11; step < 100; ++step)
    EXPECT_LT(learning_rate(cosine, step, 100), learning_rate(cosine, step - 1, 100)) << step;
  const Schedule constant{.kind = Schedule::Kind::constant, .peak = 0.3, .warm_up_share = 0};
  for (const int step : {0, 1, 99, 1000}) EXPECT_EQ(learning_rate(constant, step, 100), 0.3);
  EXPECT_EQ(learning_rate(constant, 0, 0), 0.3);
}

// The cosine at a quarter, half and three quarters of the way down: cos(pi / 4) and its like.
TEST(Schedules, ACosineHasItsClosedForm) {
  const Schedule cosine{
      .kind = Schedule::Kind::cosine, .peak = 0.02, .final_share = 0.25, .warm_up_share = 0.2};
  constexpr std::int64_t steps = 1000, warm_up = 200;
  const auto rate = [&](std::int64_t step) { return learning_rate(cosine, step, steps); };
  EXPECT_DOUBLE_EQ(rate(0), 0.02 / 200) << "the first step moves something";
  EXPECT_DOUBLE_EQ(rate(99), 0.01);
  EXPECT_DOUBLE_EQ(rate(warm_up - 1), 0.02);
  EXPECT_DOUBLE_EQ(rate(warm_up), 0.02);
  const double low = 0.005, swing = 0.015, root = std::sqrt(0.5);
  EXPECT_NEAR(rate(400), low + swing * (1 + root) / 2, 1e-15);
  EXPECT_NEAR(rate(600), low + swing / 2, 1e-15);
  EXPECT_NEAR(rate(800), low + swing * (1 - root) / 2, 1e-15);
  // The last step's rate is a step away from the lowest, by a cosine's slope there: none.
  EXPECT_NEAR(rate(999), low + swing * 0.5 * (1 - std::cos(std::acos(-1) / 800)), 1e-15);
  EXPECT_NEAR(rate(1000), low, 1e-15);
}

TEST(Schedules, AWarmUpComesBeforeAConstantToo) {
  const Schedule constant{.kind = Schedule::Kind::constant, .peak = 0.3, .warm_up_share = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(constant, 0, 50), 0.3 / 5);
  EXPECT_DOUBLE_EQ(learning_rate(constant, 3, 50), 0.3 * 4 / 5);
  for (const std::int64_t step : {4, 5, 25, 49, 50, 500})
    EXPECT_EQ(learning_rate(constant, step, 50), 0.3) << step;
}

// A share that is no whole number of steps is rounded up; a run may be shorter than its warm-up.
TEST(Schedules, OddLengths) {
  const Schedule schedule{.kind = Schedule::Kind::cosine, .peak = 1, .warm_up_share = 0.25};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0, 5), 0.5);  // 1.25 steps are two
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1, 5), 1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 2, 5), 1);
  EXPECT_NEAR(learning_rate(schedule, 5, 5), 0, 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0, 1), 1);
  const Schedule all{.kind = Schedule::Kind::cosine, .peak = 1, .warm_up_share = 1};
  EXPECT_DOUBLE_EQ(learning_rate(all, 9, 10), 1);
  EXPECT_TRUE(std::isfinite(learning_rate(all, 10, 10)));
}

// What every workload of the zoo trains with: its own peak, reached, never exceeded, and where it ends.
TEST(Schedules, OfTheZoo) {
  for (const workload::Workload& workload : workload::workloads()) {
    SCOPED_TRACE(workload.name);
    const Model model({.workload = workload.name});
    const Schedule& schedule = model.schedule();
    constexpr std::int64_t steps = 400;
    const double peak = workload.training.learning_rate;
    const auto warm_up = static_cast<std::int64_t>(std::ceil(workload.training.warm_up_share * steps));
    const auto rate = [&](std::int64_t step) { return learning_rate(schedule, step, steps); };
    EXPECT_DOUBLE_EQ(rate(0), warm_up > 0 ? peak / static_cast<double>(warm_up) : peak);
    EXPECT_DOUBLE_EQ(rate(std::max<std::int64_t>(0, warm_up - 1)), peak);
    EXPECT_DOUBLE_EQ(rate(warm_up), peak);
    for (std::int64_t step = 0; step < steps; ++step) {
      ASSERT_GT(rate(step), 0) << step;
      ASSERT_LE(rate(step), peak * (1 + 1e-15)) << step;
    }
    const bool cosine = workload.training.schedule == workload::Schedule::cosine;
    EXPECT_NEAR(rate(steps), cosine ? 0 : peak, 1e-15);
    EXPECT_NEAR(rate(warm_up + (steps - warm_up) / 2), cosine ? peak / 2 : peak, peak * 0.01);
  }
  // A rate that follows the batch, unless it is given.
  EXPECT_DOUBLE_EQ(Model({.workload = "cookienetae", .batch = 16}).schedule().peak, 3e-4);
  EXPECT_DOUBLE_EQ(Model({.workload = "cookienetae", .batch = 256}).schedule().peak, 4.8e-3);
  EXPECT_EQ(Model({.workload = "cookienetae", .batch = 16, .learning_rate = 0.25}).schedule().peak, 0.25);
  EXPECT_EQ(Model({.workload = "mlp", .batch = 16}).schedule().peak, 3e-3);
  const Model faster({.workload = "mlp", .learning_rate = 0.125});
  EXPECT_EQ(faster.schedule().peak, 0.125);
}

TEST(Schedules, SayWhatTheyAre) {
  EXPECT_EQ(
      to_json(Schedule{.kind = Schedule::Kind::constant, .peak = 0.5, .warm_up_share = 0.25}),
      (nlohmann::json{{"kind", "constant"}, {"peak", 0.5}, {"final_share", 0.0}, {"warm_up_share", 0.25}}));
  EXPECT_EQ(to_json(Schedule{}).at("kind"), "cosine");
}

}  // namespace
}  // namespace superstep::run
