// Recipes: what every workload says about its training, published and quick.
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"
#include "tests/expect_error.h"

namespace superstep::workload {
namespace {

using Kind = Schedule::Kind;

void expect_sane(const Workload& workload, const Recipe& recipe) {
  EXPECT_GT(recipe.batch, 0);
  EXPECT_GT(recipe.epochs, 0);
  EXPECT_GT(recipe.learning_rate, 0);
  const Schedule& schedule = recipe.schedule;
  const bool periodic = schedule.kind == Kind::triangular || schedule.kind == Kind::triangular2 ||
                        schedule.kind == Kind::exponential || schedule.kind == Kind::stairs;
  EXPECT_EQ(schedule.period > 0, periodic);
  const bool decays =
      schedule.kind == Kind::exponential || schedule.kind == Kind::stairs || schedule.kind == Kind::plateau;
  EXPECT_EQ(schedule.factor < 1, decays);
  EXPECT_EQ(schedule.patience > 0, schedule.kind == Kind::plateau);
  EXPECT_TRUE(recipe.average >= 0 && recipe.average < 1);
  EXPECT_NE(recipe.passes, 1) << "one pass has no spread";
  EXPECT_TRUE(schedule.final_share >= 0 && schedule.final_share < 1);
  EXPECT_FALSE(schedule.warm_up_epochs > 0 && schedule.warm_up_share > 0);
  EXPECT_TRUE(!schedule.warm_up_by_epoch || schedule.warm_up_epochs > 0);
  if (!schedule.monitor.empty()) {
    EXPECT_NE(std::ranges::find(workload.metrics, schedule.monitor, &MetricSpec::name),
              workload.metrics.end())
        << schedule.monitor;
  }
  // Options are the model's, and the model is the same: a recipe changes no number of parameters.
  EXPECT_EQ(count_parameters(build_model(workload, 1, recipe.model_options)), workload.parameters);
}

TEST(Recipes, OfTheZooAreSane) {
  int published = 0;
  for (const Workload& workload : workloads()) {
    SCOPED_TRACE(workload.name);
    expect_sane(workload, workload.training);
    EXPECT_TRUE(workload.training.model_options.empty()) << "the quick recipe is the model as it is";
    EXPECT_EQ(&find_recipe(workload, ""), &workload.training);
    EXPECT_EQ(&find_recipe(workload, "quick"), &workload.training);
    if (!workload.published) continue;
    ++published;
    expect_sane(workload, *workload.published);
    EXPECT_EQ(&find_recipe(workload, "published"), &*workload.published);
    EXPECT_FALSE(workload.published->source.empty());
    // It optimises the same outputs against the same targets.
    EXPECT_EQ(workload.published->loss.terms.size(), workload.training.loss.terms.size());
  }
  EXPECT_GE(published, 15);
}

TEST(Recipes, HaveOptionsThatGivenOnesOverride) {
  const Recipe recipe{.loss = {}, .optimizer = {}, .model_options = {"dropout=0.1", "width=4"}};
  const auto with = [&](std::vector<std::string> given) { return with_options_of(recipe, given); };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(with({}), (Texts{"dropout=0.1", "width=4"}));
  EXPECT_EQ(with({"dropout=0"}), (Texts{"width=4", "dropout=0"}));
  EXPECT_EQ(with({"dropout=0", "wid=3"}), (Texts{"width=4", "dropout=0", "wid=3"}));
  const Texts once = with({"size=2"});
  EXPECT_EQ(with(once), once) << "what has them gets them no second time";
}

TEST(Recipes, AreToldInWords) {
  EXPECT_EQ(
      to_string(*find_workload("uno").published),
      "adamax at 0.0001; times 0.5 after 5 epochs without a gain in mse after a warm-up of 5 epochs from "
      "0.002; batch 32, 50 epochs, fewer after 10 without a gain; served by 30 passes with masks; "
      "dropout=0.1");
  EXPECT_EQ(
      to_string(*find_workload("ptychonn-128").published),
      "adam at 0.0005; triangular2 from 0.2 of it, half a cycle 6 epochs; batch 64, 50 epochs; counts=plain");
  EXPECT_EQ(to_string(find_workload("braggnn").training),
            "adam at 0.002; cosine after a warm-up of 2 % of the steps; batch 128, 24 epochs");
}

}  // namespace
}  // namespace superstep::workload
