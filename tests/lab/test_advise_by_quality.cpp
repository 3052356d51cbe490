// Machines ranked by measured steps to a target: read or refused by name, steps times a step, and places as
// far as intervals tell.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/lab/advise/by_quality.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::lab {
namespace {

using nlohmann::json;

json training(const char* precision, int batch, int seed, double steps, const char* ending = "reached") {
  return {{"precision", precision}, {"batch", batch},         {"seed", seed},           {"ending", ending},
          {"steps", steps},         {"steps_low", steps - 1}, {"steps_high", steps + 1}};
}

json study() {
  return {
      {"schema", "superstep-quality-study/1"},
      {"workload", "braggnn"},
      {"until", "error_px_mean <= 0.5"},
      {"trainings",
       {training("f32", 64, 1, 100), training("f32", 64, 2, 120), training("f32", 256, 1, 50),
        training("f32", 256, 2, 70), training("bf16", 64, 1, 200), training("bf16", 64, 2, 10, "diverged")}}};
}

std::filesystem::path written(const ScratchFolder& folder, const json& study) {
  std::ofstream(folder / "results.json") << study.dump();
  return folder / "";
}

AdviseSettings settings() {
  return {.model = {.workload = "braggnn"}, .goal = Goal::time_to_quality, .machines = {"a100-40gb", "h100"}};
}

TEST(QualityCurves, AreRead) {
  const ScratchFolder folder;
  const QualityCurve curve = read_quality_curve(written(folder, study()), "braggnn");
  ASSERT_EQ(curve.points.size(), 2U);
  EXPECT_EQ(curve.points[0].batch, 64);
  EXPECT_DOUBLE_EQ(curve.points[0].steps, 110);
  EXPECT_DOUBLE_EQ(curve.points[0].low, 99);
  EXPECT_DOUBLE_EQ(curve.points[0].high, 121);
  ASSERT_EQ(curve.left_out.size(), 1U);
  EXPECT_TRUE(contains(curve.left_out[0], "bf16, batch 64: 1 of 2 seeds"));
}

TEST(QualityCurves, AreRefusedByName) {
  const ScratchFolder folder;
  EXPECT_THROW(read_quality_curve(folder / "none", "braggnn"), Error);
  EXPECT_THROW(read_quality_curve(written(folder, study()), "mlp"), Error);
  EXPECT_THROW(read_quality_curve(written(folder, json::array()), "braggnn"), Error);
  json nothing = study();
  for (json& each : nothing["trainings"]) each["ending"] = "not reached";
  EXPECT_THROW(read_quality_curve(written(folder, nothing), "braggnn"), Error);
}

TEST(AdviceByQuality, IsStepsTimesAStep) {
  const ScratchFolder folder;
  QualityCurve curve = read_quality_curve(written(folder, study()), "braggnn");
  const auto machines = advise_by_quality(settings(), curve);
  ASSERT_EQ(machines.size(), 2U);
  for (const QualityAdvice& each : machines) ASSERT_GE(each.best, 0) << each.words;
  const auto seconds = [](const QualityAdvice& each) {
    return each.options[static_cast<std::size_t>(each.best)].seconds;
  };
  EXPECT_LE(seconds(machines[0]).value, seconds(machines[1]).value);
  EXPECT_EQ(machines[0].first_place, 1);
  for (QualityPoint& point : curve.points) point.steps *= 2, point.low *= 2, point.high *= 2;
  const auto twice = advise_by_quality(settings(), curve);
  EXPECT_NEAR(seconds(twice[0]).value, 2 * seconds(machines[0]).value, 1e-9);
  EXPECT_NEAR(seconds(twice[0]).high, 2 * seconds(machines[0]).high, 1e-9);
  const auto& option = machines[0].options.front();
  EXPECT_EQ(option.measured_in, "f32") << "nothing of 16 bits was brought to the target by every seed";
}

TEST(AdviceByQuality, CountsEnergyAndMoney) {
  const ScratchFolder folder;
  const QualityCurve curve = read_quality_curve(written(folder, study()), "braggnn");
  AdviseSettings asked = settings();
  asked.goal = Goal::energy;
  asked.powers["a100-40gb"] = 100;
  for (const QualityAdvice& each : advise_by_quality(asked, curve))
    for (const QualityOption& option : each.options)
      EXPECT_NEAR(option.joules.value,
                  option.seconds.value * (each.machine.id() == "h100" ? each.machine.value("power") : 100),
                  1e-9);
  asked.goal = Goal::cost;
  EXPECT_THROW(advise_by_quality(asked, curve), Error) << "no price";
  asked.prices["h100"] = 3600;
  const auto priced = advise_by_quality(asked, curve);
  EXPECT_EQ(priced[0].machine.id(), "h100");
  const QualityOption& best = priced[0].options[static_cast<std::size_t>(priced[0].best)];
  EXPECT_NEAR(best.money.value, best.seconds.value, 1e-9) << "a price of one per second";
  EXPECT_TRUE(contains(text_of(priced, curve, Goal::cost, false), "no price given (--price a100-40gb=...)"));
}

}  // namespace
}  // namespace superstep::lab
