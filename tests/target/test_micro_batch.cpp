// The choice of the micro-batch by what a model computes and touches.
#include <gtest/gtest.h>
#include <unistd.h>

#include "superstep/target/cpu/plan/micro_batch.h"

namespace superstep::target::cpu {
namespace {

std::size_t cache() {
  const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return size > 0 ? static_cast<std::size_t>(size) : std::size_t{1} << 20;
}

// Activations of 16 samples fill the space that they are given; weights of `weights` caches.
Footprint footprint(double weights, double flops_a_sample = 1e6, bool trains = true) {
  const auto bytes = static_cast<std::size_t>(weights * static_cast<double>(cache()));
  return {.flops_a_sample = flops_a_sample,
          .bytes_a_sample = cache() / 8,
          .weight_traffic = 2 * bytes,
          .weight_bytes = bytes,
          .trains = trains};
}

TEST(MicroBatch, SmallWeightsLeaveTheActivationsInCache) {
  EXPECT_EQ(choose_micro_batch(256, 1, footprint(0.5)), 16);
  EXPECT_EQ(choose_micro_batch(256, 1, footprint(1)), 16);
}

TEST(MicroBatch, LargeWeightsAreReadAsSeldomAsItPays) {
  const std::int64_t chosen = choose_micro_batch(256, 1, footprint(100));
  EXPECT_GT(chosen, 64);
  EXPECT_EQ(256 % chosen, 0);
}

// Principal components of pictures: weights of several caches, and activations of 32 samples that exceed what
// is left for them by little. Only that little moves.
TEST(MicroBatch, ActivationsThatNearlyFitDoNotMoveAsAWhole) {
  const Footprint pictures{.flops_a_sample = 2 * static_cast<double>(cache()),
                           .bytes_a_sample = cache() / 15,
                           .weight_traffic = 4 * cache(),
                           .weight_bytes = 4 * cache()};
  EXPECT_EQ(choose_micro_batch(64, 1, pictures), 32);
}

TEST(MicroBatch, WhereArithmeticTakesTheTimeMemoryIsSaved) {
  EXPECT_EQ(choose_micro_batch(256, 1, footprint(100, 1e12)), 16);
}

TEST(MicroBatch, EveryThreadHasSomethingToDo) {
  for (const int threads : {1, 2, 3, 8, 300}) {
    EXPECT_LE(choose_micro_batch(256, threads, footprint(0.5, 1e6, false)) * std::min(threads, 256), 256);
    // Beyond eight groups of a training step its steps are divided.
    EXPECT_LE(choose_micro_batch(256, threads, footprint(0.5)) * std::min(threads, 8), 256);
  }
  EXPECT_EQ(choose_micro_batch(1, 4, footprint(100)), 1);
}

TEST(MicroBatch, ThreadsDivideTheStepsOfModelsThatAreMostlyWeights) {
  EXPECT_EQ(choose_micro_batch(8, 2, footprint(100, 1e5)), 8);
  EXPECT_LE(choose_micro_batch(8, 2, footprint(100, 1e11)), 4);
}

TEST(MicroBatch, DividesTheBatch) {
  for (const std::int64_t batch : {1, 7, 60, 97, 1000})
    for (const double weights : {0.1, 2.0, 50.0})
      EXPECT_EQ(batch % choose_micro_batch(batch, 2, footprint(weights)), 0) << batch << " " << weights;
}

}  // namespace
}  // namespace superstep::target::cpu
