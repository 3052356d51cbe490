// Plans of products: within the machine, within memory, and what they must not be.
#include <gtest/gtest.h>

#include "superstep/machine/ipu/convolution.h"
#include "superstep/machine/ipu/operators.h"
#include "superstep/machine/ipu/product_search.h"
#include "superstep/machine/predict.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"

namespace superstep::machine::ipu {
namespace {

Hardware gc200() { return hardware_of(find_machine("gc200")); }

Convolution layer(std::int64_t channels, std::int64_t field, std::int64_t kernel, std::int64_t stride = 1) {
  const std::int64_t output = (field + 2 * (kernel / 2) - kernel) / stride + 1;
  const Axis axis{.input = field, .output = output, .kernel = kernel, .stride = stride};
  return {.batch = 4, .in_channels = channels, .out_channels = channels, .axes = {axis, axis}};
}

TEST(Plans, StayWithinTheMachine) {
  const Hardware h = gc200();
  for (const Convolution& problem :
       {layer(64, 56, 3), layer(256, 14, 1), layer(128, 28, 3, 2),
        matrix_product(1, 16, 1000, 1000, ElementType::f32),
        matrix_product(16, 128, 64, 128, ElementType::f16), matrix_product(1, 1, 1, 1, ElementType::f16)})
    for (Pass pass : {Pass::forward, Pass::data_gradient, Pass::weight_gradient}) {
      const Plan plan = plan_convolution(h, problem, pass);
      EXPECT_GE(plan.tiles, 1);
      EXPECT_LE(plan.tiles, h.tiles);
      EXPECT_LE(plan.bytes.temporary + plan.bytes.interleaved,
                1.3 * h.memory_proportion * static_cast<double>(h.tile_bytes));
      const double peak = h.peak_macs(problem.element, problem.partials) * static_cast<double>(h.tiles);
      EXPECT_GE(plan.cycles.compute, problem.macs() / peak) << plan.vertex << " " << plan.partition;
    }
}

TEST(Plans, AreTheSameEveryTime) {
  const Plan a = plan_convolution(gc200(), layer(64, 28, 3), Pass::forward);
  const Plan b = plan_convolution(gc200(), layer(64, 28, 3), Pass::forward);
  EXPECT_EQ(a.partition, b.partition);
  EXPECT_EQ(a.cycles.total(), b.cycles.total());
}

TEST(Plans, LessMemoryIsNeverFaster) {
  Hardware tight = gc200();
  tight.memory_proportion = 0.03;
  const Convolution product = matrix_product(1, 1000, 512, 20000, ElementType::f16);
  const Plan free = plan_convolution(gc200(), product, Pass::forward),
             kept = plan_convolution(tight, product, Pass::forward);
  EXPECT_GT(kept.cycles.total(), free.cycles.total());
  EXPECT_LT(kept.bytes.temporary + kept.bytes.interleaved, free.bytes.temporary + free.bytes.interleaved);
  EXPECT_NE(kept.partition.find("in turn"), std::string::npos) << kept.partition;
}

TEST(Plans, AnswerToTheirConstants) {
  const Convolution product = matrix_product(1, 600, 256, 20000, ElementType::f16);
  Hardware slow = gc200();
  slow.exchange_share = 0.2;
  EXPECT_GT(plan_convolution(slow, product, Pass::forward).cycles.total(),
            1.1 * plan_convolution(gc200(), product, Pass::forward).cycles.total());
  Hardware wide = gc200();
  wide.mac_f16_f32 = 64;
  wide.conv_units_f16_f32 = 16;
  EXPECT_LT(plan_convolution(wide, product, Pass::forward).cycles.total(),
            0.9 * plan_convolution(gc200(), product, Pass::forward).cycles.total());
}

TEST(Plans, AStridedGradientDoesTheForwardPassArithmetic) {
  const Convolution strided = layer(64, 56, 3, 2);
  const Plan forward = plan_convolution(gc200(), strided, Pass::forward);
  const Plan gradient = plan_convolution(gc200(), strided, Pass::data_gradient);
  EXPECT_LT(gradient.cycles.compute, 4 * forward.cycles.compute);
}

TEST(Splits, GiveEverySizeOfTheLargestPartOnce) {
  EXPECT_EQ(distinct_splits(10, 100), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 10}));
  EXPECT_EQ(distinct_splits(10, 4), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(distinct_splits(1, 100), (std::vector<std::int64_t>{1}));
}

TEST(OtherPlans, GrowWithTheirWork) {
  const Hardware h = gc200();
  const auto doubled = [](double once, double twice) { return twice > once && twice < 2.2 * once; };
  EXPECT_TRUE(
      doubled(plan_elementwise(h, {1e8, 2}).cycles.total(), plan_elementwise(h, {2e8, 2}).cycles.total()));
  EXPECT_TRUE(
      doubled(plan_reduction(h, {1e4, 1e4}).cycles.total(), plan_reduction(h, {1e4, 2e4}).cycles.total()));
  EXPECT_TRUE(
      doubled(plan_rearrangement(h, 1e8, 2).cycles.total(), plan_rearrangement(h, 2e8, 2).cycles.total()));
  EXPECT_GT(plan_rearrangement(h, 1e8, 2).cycles.total(), 2 * plan_rearrangement(h, 1e8, 8).cycles.total());
  const Recurrent lstm{.steps = 10, .batch = 16, .inputs = 256, .hidden = 256};
  Recurrent longer = lstm, trained = lstm;
  longer.steps = 20;
  trained.training = true;
  EXPECT_NEAR(plan_recurrent(h, longer).cycles.total() / plan_recurrent(h, lstm).cycles.total(), 2, 1e-9);
  EXPECT_GT(plan_recurrent(h, trained).cycles.total(), 2 * plan_recurrent(h, lstm).cycles.total());
}

TEST(OtherPlans, SortingGrowsWithLinesAndWithWhatIsKept) {
  const Hardware h = gc200();
  const auto cycles = [&](double lines, double length, double kept) {
    return plan_sorting(h, {.lines = lines, .length = length, .kept = kept}).cycles.total();
  };
  const double once = cycles(1e6, 1000, 8);
  EXPECT_NEAR(cycles(2e6, 1000, 8) / once, 2, 0.1);
  EXPECT_NEAR(cycles(1e6, 2000, 8) / once, 2, 0.3);
  EXPECT_GT(cycles(1e6, 1000, 64), 1.1 * once);
  // One long line lies on many tiles: far less than a thousandth of the time that a thousand of them take.
  const Plan one = plan_sorting(h, {.lines = 1, .length = 1e6, .kept = 10});
  EXPECT_GT(one.tiles, 1000);
  EXPECT_LT(one.cycles.total(), 0.01 * cycles(1472, 1e6, 10));
}

// Planning the training of ResNet-50 a second time searches nothing; another option does.
TEST(Plans, AreRememberedByAllThatTheyDependOn) {
  const Machine machine = find_machine("gc200");
  const workload::Workload& resnet = workload::find_workload("resnet50");
  const graph::Graph step = transform::make_training_step(workload::build_model(resnet, 2),
                                                          resnet.training.loss, resnet.training.optimizer);
  const auto searches = [&](const Machine& on, const char* precision) {
    const PlanCounts before = plan_counts();
    predict(on, step, {.precision = precision_from_name(precision), .micro_batch = 2, .pipeline = {}});
    const PlanCounts after = plan_counts();
    EXPECT_GT(after.remembered + after.searched, before.remembered + before.searched);
    return after.searched - before.searched;
  };
  EXPECT_GT(searches(machine, "16.16"), 20U);
  EXPECT_EQ(searches(machine, "16.16"), 0U);
  EXPECT_GT(searches(machine.with("memory_proportion", 0.55), "16.16"), 20U);
  EXPECT_GT(searches(machine.with("exchange_share", 0.7), "16.16"), 20U);
  EXPECT_GT(searches(machine, "f16"), 20U);
  EXPECT_EQ(searches(machine, "16.16"), 0U);  // still there
}

}  // namespace
}  // namespace superstep::machine::ipu
