// Sums of groups of micro-batches: the same bits in whatever order the groups are completed.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "superstep/base/random.h"
#include "superstep/base/thread_pool.h"
#include "superstep/target/cpu/run/gradient_sums.h"

namespace superstep::target::cpu {
namespace {

constexpr std::size_t count = 100;

Plan plan_of_sums() {
  Plan plan;
  plan.accumulator_bytes = count * sizeof(float);
  plan.added_to = {{0, plan.accumulator_bytes}};
  return plan;
}

float term(std::size_t group, std::size_t i) {
  return static_cast<float>(RandomStream(group * count + i).uniform(-1, 1));
}

void fill(std::byte* memory, std::size_t group) {
  auto* values = reinterpret_cast<float*>(memory);
  for (std::size_t i = 0; i < count; ++i) values[i] += term(group, i);
}

// Both halves in order, then the halves.
float expected(std::size_t groups, std::size_t i, float scale) {
  const std::size_t middle = std::max<std::size_t>(1, groups / 2);
  float first = term(0, i);
  for (std::size_t group = 1; group < middle; ++group) first += term(group, i);
  if (groups > middle) {
    float second = term(middle, i);
    for (std::size_t group = middle + 1; group < groups; ++group) second += term(group, i);
    first += second;
  }
  return first * scale;
}

void expect_total(const GradientSums& sums, std::size_t groups, float scale) {
  const auto* total = reinterpret_cast<const float*>(sums.total());
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(total[i], expected(groups, i, scale)) << groups << " at " << i;
}

TEST(GradientSums, AreTheSameInAnyOrder) {
  const Plan plan = plan_of_sums();
  RandomStream random(2);
  for (std::size_t groups = 1; groups <= 8; ++groups) {
    GradientSums sums(plan, groups, groups);
    for (int run = 0; run < 20; ++run) {
      sums.begin_run();
      std::vector<std::size_t> order(groups);
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t i = groups; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
      // Up to three groups are worked on at once.
      std::vector<std::size_t> open;
      for (const std::size_t group : order) {
        fill(sums.begin(group), group);
        open.push_back(group);
        if (open.size() < 3) continue;
        sums.complete(open.front());
        open.erase(open.begin());
      }
      for (const std::size_t group : open) sums.complete(group);
      sums.finish({0, 60}, 0.125f);
      sums.finish({60, count - 60}, 0.125f);
      expect_total(sums, groups, 0.125f);
    }
  }
}

TEST(GradientSums, AreTheSameOnSeveralThreads) {
  const Plan plan = plan_of_sums();
  ThreadPool pool(3);
  GradientSums sums(plan, 8, 8);
  for (int run = 0; run < 200; ++run) {
    sums.begin_run();
    pool.parallel_for(8, [&](std::int64_t group, int) {
      fill(sums.begin(static_cast<std::size_t>(group)), static_cast<std::size_t>(group));
      sums.complete(static_cast<std::size_t>(group));
    });
    sums.finish({0, count}, 0.5f);
    expect_total(sums, 8, 0.5f);
  }
}

TEST(GradientSums, OneThreadNeedsThreeBuffers) {
  const Plan plan = plan_of_sums();
  GradientSums sums(plan, 8, 3);
  std::set<std::byte*> buffers;
  sums.begin_run();
  for (std::size_t group = 0; group < 8; ++group) {
    buffers.insert(sums.begin(group));
    sums.complete(group);
  }
  EXPECT_EQ(buffers.size(), 3u);
}

// Others read the total in the middle of a run: nothing may be added to it before it is asked for.
TEST(GradientSums, SharedMemoryIsLeftAloneUntilItIsFinished) {
  const Plan plan = plan_of_sums();
  std::vector<float> memory(count);
  GradientSums sums(plan, 4, 4, memory);
  sums.begin_run();
  for (std::size_t group = 0; group < 4; ++group) {
    fill(sums.begin(group), group);
    sums.complete(group);
  }
  EXPECT_EQ(memory[7], term(0, 7));
  sums.finish({0, count}, 1);
  expect_total(sums, 4, 1);
}

}  // namespace
}  // namespace superstep::target::cpu
