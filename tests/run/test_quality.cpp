// What a number of quality is worth, and that every workload says it of its own metrics.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/run/quality.h"
#include "superstep/run/task.h"
#include "tests/contains.h"

namespace superstep::run {
namespace {

const workload::Workload& uno() { return workload::find_workload("uno"); }

Quality quality(double reached, std::optional<double> target, References references, bool higher = true) {
  return {.metric = "r2",
          .unit = "",
          .higher_is_better = higher,
          .reached = reached,
          .samples = 100,
          .target = target,
          .references = std::move(references)};
}

const References all{.floor = Reference{"ridge", 0.4},
                     .conventional = Reference{"trees", 0.6},
                     .limit = Reference{"the noise", 0.8}};

TEST(Quality, KnowsWhichWayIsBetter) {
  EXPECT_TRUE(higher_is_better(uno(), "r2"));
  EXPECT_FALSE(higher_is_better(uno(), "mse"));
  EXPECT_FALSE(higher_is_better(workload::find_workload("braggnn"), "error_px_p95"));
  EXPECT_TRUE(higher_is_better(workload::find_workload("resnet50"), "accuracy"));
  try {
    higher_is_better(uno(), "mes");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_TRUE(contains(error.what(), "'uno' has no such metric (did you mean 'mse'?)")) << error.what();
  }
  EXPECT_THROW(higher_is_better(workload::find_workload("rnn-k1"), "rmse"), Error);
}

TEST(Quality, NotANumberIsNeverGood) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool higher : {false, true}) {
    EXPECT_FALSE(as_good(nan, 1, higher));
    EXPECT_TRUE(as_good(1, 1, higher));
  }
  EXPECT_EQ(standing(quality(nan, 0.75, all)), Standing::below_floor);
  EXPECT_EQ(standing(quality(nan, 0.75, {})), Standing::short_of_target);
}

TEST(Quality, StandsSomewhere) {
  EXPECT_EQ(standing(quality(-1.85, 0.75, all)), Standing::below_floor);
  EXPECT_EQ(standing(quality(0.5, 0.75, all)), Standing::short_of_target);
  EXPECT_EQ(standing(quality(0.75, 0.75, all)), Standing::target_reached);
  EXPECT_EQ(standing(quality(0.5, {}, {})), Standing::unknown);
  // The other way round where less is better.
  EXPECT_EQ(standing(quality(0.5, 0.75, all, false)), Standing::below_floor);
  EXPECT_EQ(standing(quality(0.3, 0.75, all, false)), Standing::target_reached);
}

TEST(Quality, HasAVerdictInWords) {
  EXPECT_EQ(verdict(quality(-1.85, 0.75, all)), "below the floor: ridge is better");
  EXPECT_EQ(verdict(quality(0.5, 0.75, all)), "target not reached, between ridge and trees");
  EXPECT_EQ(verdict(quality(0.7, 0.75, all)), "target not reached, better than trees");
  EXPECT_EQ(verdict(quality(0.77, 0.75, all)), "target reached, better than trees");
  EXPECT_EQ(verdict(quality(0.6, 0.75, all)), "target not reached, as good as trees");
  EXPECT_EQ(verdict(quality(0.55, 0.5, all)), "target reached, between ridge and trees");
  EXPECT_EQ(verdict(quality(0.85, 0.75, all)),
            "target reached, better than trees; better than the noise allows: look for a leak");
  EXPECT_EQ(verdict(quality(0.5, {}, {})), "no target is set");
  EXPECT_EQ(verdict(quality(0.5, 0.4, {.floor = Reference{"the mean", 0}, .conventional = {}, .limit = {}})),
            "target reached, better than the mean");
}

TEST(Quality, ComesBackFromJson) {
  const Quality made = quality(0.5, 0.75, all), read = quality_from_json(to_json(made));
  EXPECT_EQ(to_json(read), to_json(made));
  EXPECT_EQ(to_json(made).at("better"), "higher");
  EXPECT_EQ(read.references.conventional->method, "trees");
  const Quality bare = quality_from_json(to_json(quality(0.5, {}, {})));
  EXPECT_FALSE(bare.target || bare.references.floor);
  EXPECT_THROW(quality_from_json({{"metric", 3}}), Error);
}

TEST(Quality, TakesTheTargetOfTheWorkload) {
  const Quality made = judge(uno(), {.name = "r2", .value = 0.5, .unit = ""}, 7, all);
  EXPECT_TRUE(made.higher_is_better);
  EXPECT_EQ(made.samples, 7);
  EXPECT_TRUE(made.target);
  // A target is of one metric alone.
  EXPECT_FALSE(judge(uno(), {.name = "mse", .value = 0.5, .unit = ""}, 7, {}).target);
}

}  // namespace
}  // namespace superstep::run
