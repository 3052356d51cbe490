// Plans below a limit: smaller micro-batches, then recomputation, then a refusal with the smallest there is.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/error.h"
#include "superstep/target/cpu/plan/memory_limit.h"
#include "superstep/target/target.h"
#include "superstep/transform/training/training_step.h"
#include "tests/contains.h"
#include "tests/target/models.h"

namespace superstep {
namespace {

using target::cpu::choose_below;
using target::cpu::Recomputation;

// A plan of 100 bytes and 10 a sample, a tenth less for recomputation.
std::size_t made_up_bytes(std::int64_t micro_batch, const Recomputation& recomputation) {
  return 100 + static_cast<std::size_t>(10 * micro_batch) -
         static_cast<std::size_t>(100 * recomputation.share);
}

TEST(MemoryLimit, TakesTheLargestMicroBatchThatFits) {
  EXPECT_EQ(choose_below(1000, 64, 16, true, made_up_bytes).micro_batch, 16);
  EXPECT_EQ(choose_below(240, 64, 16, true, made_up_bytes).micro_batch, 8);
  EXPECT_EQ(choose_below(110, 64, 16, true, made_up_bytes).micro_batch, 1);
  EXPECT_EQ(choose_below(240, 64, 16, true, made_up_bytes).recomputation.share, 0);
}

TEST(MemoryLimit, RecomputesWhereNothingElseIsLeft) {
  EXPECT_EQ(choose_below(108, 64, 16, true, made_up_bytes).micro_batch, 1);
  EXPECT_GT(choose_below(108, 64, 16, true, made_up_bytes).recomputation.share, 0);
  const auto whole = choose_below(250, 16, 16, false, made_up_bytes);
  EXPECT_EQ(whole.micro_batch, 16);
  EXPECT_GT(whole.recomputation.share, 0.05);
}

// Gradients that wait for the other micro-batches, 300 bytes of them, are what is large.
TEST(MemoryLimit, RecomputesTheWholeBatchWhereGradientsAreLarge) {
  const auto bytes_of = [](std::int64_t micro_batch, const Recomputation& recomputation) {
    return made_up_bytes(micro_batch, recomputation) + (micro_batch < 16 ? 300 : 0);
  };
  EXPECT_EQ(choose_below(260, 16, 8, true, bytes_of).micro_batch, 16);
  EXPECT_EQ(choose_below(260, 16, 8, true, bytes_of).recomputation.share, 0);
  const auto again = choose_below(255, 16, 8, true, bytes_of);
  EXPECT_EQ(again.micro_batch, 16);
  EXPECT_GT(again.recomputation.share, 0);
}

TEST(MemoryLimit, RefusesWithTheSmallestThereIs) {
  try {
    choose_below(50, 64, 16, true, made_up_bytes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_TRUE(contains(error.what(), "the smallest plan takes 75 B (micro-batch 1"));
    EXPECT_TRUE(contains(error.what(), "limit of 50 B"));
  }
}

graph::Graph training_step(std::int64_t batch) {
  return transform::make_training_step(test::attention_network(batch), {{transform::LossTerm{}}},
                                       {.kind = transform::OptimizerKind::sgd});
}

struct Stepped {
  double loss = 0;
  Tensor weights;
  target::PlanSummary plan;
};

Stepped step(const target::CompileOptions& options) {
  const auto executable = target::find_target("cpu").compile(training_step, options);
  std::vector<Tensor> inputs, outputs;
  std::uint64_t seed = 5;
  for (const auto& port : executable->inputs())
    inputs.push_back(port.type.shape.rank() == 0
                         ? Tensor::scalar(0.01f)
                         : test::random_tensor(port.type.element, port.type.shape, seed++));
  for (const auto& port : executable->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  executable->run(inputs, outputs);
  return {outputs[0].at(0), executable->state("first.weight"), executable->summary()};
}

TEST(MemoryLimit, ATrainingStepStaysTheSame) {
  const Stepped free = step({.batch = 16, .micro_batch = 16});
  ASSERT_GT(free.plan.plan_bytes, 0u);
  for (const double share : {0.9, 0.75, 0.6}) {
    const auto limit = static_cast<std::size_t>(share * static_cast<double>(free.plan.plan_bytes));
    const Stepped small = step({.batch = 16, .memory_limit = limit});
    EXPECT_LE(small.plan.plan_bytes, limit);
    EXPECT_LE(small.plan.micro_batch, 16);
    EXPECT_TRUE(contains(small.plan.choice, "stays below the limit"));
    EXPECT_NEAR(small.loss, free.loss, 1e-5 * std::abs(free.loss));
    for (std::int64_t i = 0; i < free.weights.element_count(); ++i)
      ASSERT_NEAR(small.weights.at(i), free.weights.at(i), 1e-5);
  }
}

TEST(MemoryLimit, RecomputationFitsWhereAMicroBatchIsAskedFor) {
  const Stepped one = step({.batch = 1});
  const auto limit = one.plan.plan_bytes - 2048;
  const Stepped small = step({.batch = 1, .memory_limit = limit});
  EXPECT_LE(small.plan.plan_bytes, limit);
  EXPECT_TRUE(contains(small.plan.choice, "computed again"));
  EXPECT_NEAR(small.loss, one.loss, 1e-5 * std::abs(one.loss));
  for (std::int64_t i = 0; i < one.weights.element_count(); ++i)
    ASSERT_NEAR(small.weights.at(i), one.weights.at(i), 1e-5);
}

TEST(MemoryLimit, APlanThatCannotFitIsRefused) {
  try {
    step({.batch = 16, .memory_limit = 1000});
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "the smallest plan takes"));
  }
}

}  // namespace
}  // namespace superstep
