// Learning rates over a run: every kind of schedule against its closed form.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/run/model.h"
#include "superstep/run/train/schedule.h"
#include "superstep/run/train/schedule_text.h"
#include "tests/expect_error.h"

namespace superstep::run {
namespace {

TEST(Schedules, WarmUpThenHalfACosine) {
  const Schedule cosine{.shape = {.kind = Schedule::Kind::cosine, .final_share = 0.1, .warm_up_share = 0.1},
                        .peak = 1};
  EXPECT_DOUBLE_EQ(learning_rate(cosine, {0, 100}), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, {9, 100}), 1);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, {10, 100}), 1);
  EXPECT_NEAR(learning_rate(cosine, {55, 100}), 0.55, 1e-12);  // half way down
  EXPECT_NEAR(learning_rate(cosine, {100, 100}), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate(cosine, {5000, 100}), 0.1, 1e-12) << "and stays there";
  for (int step = 11; step < 100; ++step)
    EXPECT_LT(learning_rate(cosine, {step, 100}), learning_rate(cosine, {step - 1, 100})) << step;
  const Schedule constant{.shape = {.kind = Schedule::Kind::constant, .warm_up_share = 0}, .peak = 0.3};
  for (const int step : {0, 1, 99, 1000}) EXPECT_EQ(learning_rate(constant, {step, 100}), 0.3);
  EXPECT_EQ(learning_rate(constant, {0, 0}), 0.3);
}

TEST(Schedules, ALineEndsAtItsLowest) {
  const Schedule line{.shape = {.kind = Schedule::Kind::linear, .final_share = 0.2, .warm_up_share = 0.1},
                      .peak = 1};
  EXPECT_DOUBLE_EQ(learning_rate(line, {4, 100}), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(line, {10, 100}), 1);
  EXPECT_NEAR(learning_rate(line, {55, 100}), 0.6, 1e-12);
  EXPECT_NEAR(learning_rate(line, {100, 100}), 0.2, 1e-12);
  EXPECT_NEAR(learning_rate(line, {900, 100}), 0.2, 1e-12) << "and stays there";
}

// The cosine at a quarter, half and three quarters of the way down: cos(pi / 4) and its like.
TEST(Schedules, ACosineHasItsClosedForm) {
  const Schedule cosine{.shape = {.kind = Schedule::Kind::cosine, .final_share = 0.25, .warm_up_share = 0.2},
                        .peak = 0.02};
  constexpr std::int64_t steps = 1000, warm_up = 200;
  const auto rate = [&](std::int64_t step) { return learning_rate(cosine, {step, steps}); };
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
  const Schedule constant{.shape = {.kind = Schedule::Kind::constant, .warm_up_share = 0.1}, .peak = 0.3};
  EXPECT_DOUBLE_EQ(learning_rate(constant, {0, 50}), 0.3 / 5);
  EXPECT_DOUBLE_EQ(learning_rate(constant, {3, 50}), 0.3 * 4 / 5);
  for (const std::int64_t step : {4, 5, 25, 49, 50, 500})
    EXPECT_EQ(learning_rate(constant, {step, 50}), 0.3) << step;
}

// A share that is no whole number of steps is rounded up; a run may be shorter than its warm-up.
TEST(Schedules, OddLengths) {
  const Schedule schedule{.shape = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.25}, .peak = 1};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, {0, 5}), 0.5);  // 1.25 steps are two
  EXPECT_DOUBLE_EQ(learning_rate(schedule, {1, 5}), 1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, {2, 5}), 1);
  EXPECT_NEAR(learning_rate(schedule, {5, 5}), 0, 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, {0, 1}), 1);
  const Schedule all{.shape = {.kind = Schedule::Kind::cosine, .warm_up_share = 1}, .peak = 1};
  EXPECT_DOUBLE_EQ(learning_rate(all, {9, 10}), 1);
  EXPECT_TRUE(std::isfinite(learning_rate(all, {10, 10})));
}

// What every workload of the zoo trains with: its own peak, reached, never exceeded, and where it ends.
TEST(Schedules, OfTheZoo) {
  for (const workload::Workload& workload : workload::workloads()) {
    SCOPED_TRACE(workload.name);
    const Model model({.workload = workload.name});
    const Schedule& schedule = model.schedule();
    constexpr std::int64_t steps = 400;
    const double peak = workload.training.learning_rate;
    const workload::Schedule& shape = workload.training.schedule;
    const auto warm_up = static_cast<std::int64_t>(std::ceil(shape.warm_up_share * steps));
    const auto rate = [&](std::int64_t step) { return learning_rate(schedule, {step, steps}); };
    EXPECT_DOUBLE_EQ(rate(0), warm_up > 0 ? peak / static_cast<double>(warm_up) : peak);
    EXPECT_DOUBLE_EQ(rate(std::max<std::int64_t>(0, warm_up - 1)), peak);
    EXPECT_DOUBLE_EQ(rate(warm_up), peak);
    for (std::int64_t step = 0; step < steps; ++step) {
      ASSERT_GT(rate(step), 0) << step;
      ASSERT_LE(rate(step), peak * (1 + 1e-15)) << step;
    }
    const bool cosine = shape.kind == Schedule::Kind::cosine;
    const double last = cosine ? peak * shape.final_share : peak;
    EXPECT_NEAR(rate(steps), last, 1e-15);
    EXPECT_NEAR(rate(warm_up + (steps - warm_up) / 2), (peak + last) / 2, peak * 0.01);
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
      to_json(Schedule{.shape = {.kind = Schedule::Kind::constant, .warm_up_share = 0.25}, .peak = 0.5}),
      (nlohmann::json{{"kind", "constant"}, {"peak", 0.5}, {"final_share", 0.0}, {"warm_up_share", 0.25}}));
  const Schedule plateau{.shape = {.kind = Schedule::Kind::plateau,
                                   .warm_up_epochs = 5,
                                   .warm_up_from = 2e-3,
                                   .factor = 0.5,
                                   .patience = 5,
                                   .monitor = "mse",
                                   .give_up = 10},
                         .peak = 1e-4};
  const nlohmann::json said = to_json(plateau);
  EXPECT_EQ(said.at("kind"), "plateau");
  EXPECT_EQ(said.at("monitor"), "mse");
  EXPECT_EQ(said.at("patience"), 5);
  EXPECT_EQ(said.at("warm_up_from"), 2e-3);
  EXPECT_EQ(to_json(Schedule{}).at("kind"), "constant");
}

// L. Smith's figure 1: three epochs of ten steps a half cycle.
TEST(Schedules, TrianglesGoUpAndDown) {
  const Schedule even{.shape = {.kind = Schedule::Kind::triangular, .final_share = 0.1, .period = 3},
                      .peak = 1};
  const auto rate = [&](const Schedule& schedule, std::int64_t step) {
    return learning_rate(schedule, {step, 600, 10});
  };
  for (int cycle = 0; cycle < 10; ++cycle)
    for (int step = 0; step <= 30; ++step) {
      const double expected = 0.1 + 0.9 * step / 30;
      EXPECT_NEAR(rate(even, 60 * cycle + step), expected, 1e-12) << cycle << ' ' << step;
      EXPECT_NEAR(rate(even, 60 * cycle + 60 - step), expected, 1e-12) << cycle << ' ' << step;
    }
  // Each half as high above the lowest rate as the one before.
  Schedule halving = even;
  halving.shape.kind = Schedule::Kind::triangular2;
  double height = 0.9;
  for (int cycle = 0; cycle < 10; ++cycle, height /= 2) {
    EXPECT_NEAR(rate(halving, 60 * cycle), 0.1, 1e-12);
    EXPECT_NEAR(rate(halving, 60 * cycle + 15), 0.1 + height / 2, 1e-12) << cycle;
    EXPECT_NEAR(rate(halving, 60 * cycle + 30), 0.1 + height, 1e-12) << cycle;
    EXPECT_NEAR(rate(halving, 60 * cycle + 40), 0.1 + height * 2 / 3, 1e-12) << cycle;
  }
  // A half cycle that is no whole number of steps.
  Schedule odd = even;
  odd.shape.period = 0.25;
  EXPECT_NEAR(rate(odd, 1), 0.1 + 0.9 * 0.4, 1e-12);
  EXPECT_NEAR(rate(odd, 3), 0.1 + 0.9 * 0.8, 1e-12);
}

TEST(Schedules, DecaysHaveTheirClosedForm) {
  // EfficientNet's: times 0.97 over each 2.4 epochs.
  const Schedule smooth{.shape = {.kind = Schedule::Kind::exponential, .period = 2.4, .factor = 0.97},
                        .peak = 0.256};
  const auto rate = [](const Schedule& schedule, std::int64_t step) {
    return learning_rate(schedule, {step, 35000, 100});
  };
  EXPECT_DOUBLE_EQ(rate(smooth, 0), 0.256);
  EXPECT_NEAR(rate(smooth, 240), 0.256 * 0.97, 1e-15);
  EXPECT_NEAR(rate(smooth, 120), 0.256 * std::sqrt(0.97), 1e-15);
  EXPECT_NEAR(rate(smooth, 35000), 0.256 * std::exp(std::log(0.97) * 350 / 2.4), 1e-15);
  // Stairs keep the rate between two decays; neither falls below the lowest rate.
  const Schedule stairs{
      .shape = {.kind = Schedule::Kind::stairs, .final_share = 0.005, .period = 30, .factor = 0.1},
      .peak = 0.1};
  for (const auto& [step, expected] :
       {std::pair(0, 0.1), std::pair(2999, 0.1), std::pair(3000, 0.01), std::pair(5999, 0.01),
        std::pair(6000, 0.001), std::pair(9000, 5e-4), std::pair(30000, 5e-4)})
    EXPECT_NEAR(rate(stairs, step), expected, 1e-15) << step;
}

// CANDLE's Uno: epoch by epoch from the optimiser's own rate down to the recipe's, then halves.
TEST(Schedules, AWarmUpMayComeFromAbove) {
  const Schedule uno{.shape = {.kind = Schedule::Kind::plateau,
                               .final_share = 0.1,
                               .warm_up_epochs = 5,
                               .warm_up_from = 2e-3,
                               .warm_up_by_epoch = true,
                               .factor = 0.5,
                               .patience = 5},
                     .peak = 1e-4};
  EXPECT_EQ(warm_up_steps(uno.shape, {0, 500, 10}), 50);
  for (std::int64_t step = 0; step < 50; ++step) {
    const double epoch = static_cast<double>(step / 10);
    EXPECT_NEAR(learning_rate(uno, {step, 500, 10}), (2e-3 * (5 - epoch) + 1e-4 * epoch) / 5, 1e-15) << step;
  }
  EXPECT_DOUBLE_EQ(learning_rate(uno, {50, 500, 10}), 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(uno, {499, 500, 10}, 0.25), 2.5e-5);
  EXPECT_DOUBLE_EQ(learning_rate(uno, {499, 500, 10}, 1.0 / 1024), 1e-5) << "the lowest rate";
  EXPECT_DOUBLE_EQ(learning_rate(uno, {10, 500, 10}, 0.25), (2e-3 * 4 + 1e-4) / 5) << "not while it warms up";
  // Step by step, over epochs rather than a share of the run.
  const Schedule rising{.shape = {.kind = Schedule::Kind::constant, .warm_up_epochs = 2}, .peak = 1};
  EXPECT_DOUBLE_EQ(learning_rate(rising, {0, 1000, 10}), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate(rising, {18, 1000, 10}), 0.95);
  EXPECT_DOUBLE_EQ(learning_rate(rising, {20, 1000, 10}), 1);
}

// Epoch after epoch of a metric, and what a plateau of two epochs makes of it, by hand.
TEST(Schedules, APlateauReducesAndWaitsAgain) {
  const workload::Schedule shape{
      .kind = Schedule::Kind::plateau, .final_share = 0.1, .factor = 0.5, .patience = 2, .give_up = 5};
  struct Epoch {
    double value, reduced;
    int waited, without_gain;
  };
  Plateau plateau;
  for (const Epoch& epoch :
       {Epoch{9, 1, 0, 0}, Epoch{9, 1, 1, 1}, Epoch{8, 1, 0, 0}, Epoch{8.5, 1, 1, 1}, Epoch{8, 0.5, 0, 2},
        Epoch{8.1, 0.5, 1, 3}, Epoch{7, 0.5, 0, 0}, Epoch{8, 0.5, 1, 1}, Epoch{8, 0.25, 0, 2},
        Epoch{8, 0.25, 1, 3}, Epoch{8, 0.125, 0, 4}}) {
    EXPECT_FALSE(gives_up(plateau, shape));
    watch(plateau, shape, epoch.value, plateau.gains(epoch.value, false), false);
    EXPECT_EQ(plateau.reduced, epoch.reduced);
    EXPECT_EQ(plateau.waited, epoch.waited);
    EXPECT_EQ(plateau.without_gain, epoch.without_gain);
  }
  EXPECT_EQ(*plateau.best, 7);
  watch(plateau, shape, 7, plateau.gains(7, false), false);
  EXPECT_TRUE(gives_up(plateau, shape)) << "as good is no gain";
  watch(plateau, shape, 7, false, false);
  EXPECT_EQ(plateau.reduced, 0.1) << "the lowest rate";
  // Where more is better, and nothing while the rates warm up.
  Plateau other;
  for (int i = 0; i < 6; ++i) watch(other, shape, 0.5, other.gains(0.5, true), true);
  EXPECT_EQ(other.reduced, 1);
  EXPECT_TRUE(other.gains(0.6, true));
  EXPECT_FALSE(other.gains(0.4, true));
}

// --- as users write them

TEST(ScheduleText, SaysItsKindAndConstants) {
  const auto cosine = schedule_from_text("cosine:warm_up=5,warm_up_from=0.1,final=0.01", 2);
  EXPECT_EQ(cosine.kind, Schedule::Kind::cosine);
  EXPECT_EQ(cosine.warm_up_epochs, 5);
  EXPECT_EQ(cosine.warm_up_from, 0.2) << "a share of the peak";
  EXPECT_EQ(cosine.final_share, 0.01);
  const auto stairs = schedule_from_text("stairs:period=30", 1);
  EXPECT_EQ(stairs.period, 30);
  EXPECT_EQ(stairs.factor, 0.1);
  const auto plateau = schedule_from_text("plateau:patience=3,factor=0.5", 1);
  EXPECT_EQ(plateau.patience, 3);
  EXPECT_EQ(plateau.factor, 0.5);
  EXPECT_EQ(schedule_from_text("plateau", 1).patience, 10);
  EXPECT_EQ(schedule_from_text("constant", 1).factor, 1);
}

TEST(ScheduleText, OneCycleGoesUpAndDown) {
  const Schedule cycle{.shape = schedule_from_text("one_cycle", 3), .peak = 3};
  const auto rate = [&](std::int64_t step) {
    return learning_rate(cycle, {.step = step, .steps = 1000, .steps_an_epoch = 100});
  };
  EXPECT_NEAR(rate(0), 0.12, 0.02);
  EXPECT_NEAR(rate(300), 3, 1e-9);
  EXPECT_NEAR(rate(650), 1.5, 1e-3);
  EXPECT_NEAR(rate(1000), 1.2e-5, 1e-9);
  const auto longer = schedule_from_text("one_cycle:warm_up=2", 3);
  EXPECT_EQ(longer.warm_up_share, 0) << "epochs take the place of the share";
}

TEST(ScheduleText, WhatIsWrongIsRefusedByName) {
  const auto refused = [](const char* text, std::initializer_list<std::string> why) {
    expect_error(ErrorCode::invalid_argument, why, [&] { schedule_from_text(text, 1); });
  };
  refused("cosin", {"--schedule cosin", "no such schedule", "'cosine'"});
  refused("one_cylce", {"one_cycle"});
  refused("cosine:period=3", {"cosine has no constant 'period'"});
  refused("constant:final=1", {"no constant 'final'"});
  refused("linear:factor=1", {"no constant 'factor'"});
  refused("stairs", {"has no period", "period=10"});
  refused("stairs:period=0", {"period must"});
  refused("stairs:period=3,factor=2", {"factor must"});
  refused("stairs:period=nan", {"period must"});
  refused("cosine:final=-1", {"final must"});
  refused("cosine:warm_up", {"'warm_up' is no NAME=VALUE"});
  refused("cosine:warm_up=1,warm_up=2", {"warm_up is given twice"});
  refused("cosine:warm_up=1,warm_up_share=0.1", {"two lengths"});
  refused("cosine:warm_up_from=0.1", {"there is none"});
  refused("plateau:patience=1.5", {"patience must be a whole number"});
  refused("plateau:patience=0", {"patience must be a whole number"});
  refused("cosine:patience=2", {"no constant 'patience'"});
  refused("", {"no such schedule"});
}

}  // namespace
}  // namespace superstep::run
