// The time of a step by those of steps like it.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/machine/machine.h"
#include "superstep/machine/processor/kernel_times.h"

namespace superstep::machine {
namespace {

constexpr ThreadPeaks peaks{.flops = 1e11, .bytes = 1e10};

KernelTime product(double size, double seconds) {
  const int n = static_cast<int>(size);
  return {.kernel = "f32 product, blocks of " + std::to_string(n) + " x " + std::to_string(n),
          .flops = 2 * size * size * size,
          .bytes = 12 * size * size,
          .working_set = 12 * size * size,
          .seconds = seconds};
}

TEST(KernelTimes, DescriptionsThatDifferInNumbersAreAFamily) {
  EXPECT_EQ(family_of("f32 convolution, libxsmm, tiles of 64 x 60 + bias, relu"),
            "f32 convolution, libxsmm, tiles of # x #");
  EXPECT_EQ(family_of("f32 random mask, keep 0.9, dense"), family_of("f32 random mask, keep 0.75, dense"));
  EXPECT_NE(family_of("bf16 softmax, 8 rows of 9"), family_of("f32 softmax, 8 rows of 9"));
  EXPECT_EQ(family_of("f32 input gradient, Winograd F(3x3, 3x3), 9 blocks of 32 columns"),
            "f32 input gradient, Winograd F(#x#, #x#), # blocks of # columns");
}

TEST(KernelTimes, AStepThatWasMeasuredAloneComesBackAsItWas) {
  const KernelTimes times({product(64, 3e-5)}, peaks);
  const auto same = times.estimate(product(64, 0));
  EXPECT_NEAR(same.seconds, 3e-5, 1e-12);
  EXPECT_TRUE(same.known);
}

// What is carried over is the excess over the peaks: twice the operations take about twice as long.
TEST(KernelTimes, ALargerStepTakesLongerAsItsPeaksSay) {
  const KernelTimes times({product(512, 2 * 512. * 512 * 512 / 0.5e11)}, peaks);
  const double predicted = times.estimate(product(1024, 0)).seconds;
  EXPECT_NEAR(predicted, 2 * 1024. * 1024 * 1024 / 0.5e11, 0.01 * predicted);
}

TEST(KernelTimes, TheNearerOfTwoCountsMore) {
  const double fast = 2 * 256. * 256 * 256 / 0.9e11, slow = 2 * 16. * 16 * 16 / 0.1e11;
  const KernelTimes times({product(256, fast), product(16, slow)}, peaks);
  const double near = times.estimate(product(200, 0)).seconds;
  EXPECT_NEAR(near, 2 * 200. * 200 * 200 / 0.9e11, 0.15 * near);
}

// A convolution that ends in tanh says little of one that ends in relu, however near its sizes are.
TEST(KernelTimes, WhatEndsInAnotherFunctionCountsLittle) {
  const auto with = [](const char* added, double size, double seconds) {
    KernelTime time = product(size, seconds);
    time.kernel += added;
    return time;
  };
  const double fast = 2 * 256. * 256 * 256 / 0.9e11, slow = 10 * 2 * 200. * 200 * 200 / 0.9e11;
  const KernelTimes times({with(" + bias, relu", 256, fast), with(" + bias, tanh", 200, slow)}, peaks);
  const double relu = times.estimate(with(" + bias, relu", 200, 0)).seconds;
  EXPECT_LT(relu, 1.3 * 2 * 200. * 200 * 200 / 0.9e11);
  EXPECT_GT(times.estimate(with(" + bias, tanh", 200, 0)).seconds, 0.7 * slow);
  // A name that only begins like one of them is another.
  const KernelTimes gradients({with(" + relu gradient", 256, fast), with(" + tanh", 200, slow)}, peaks);
  EXPECT_LT(gradients.estimate(with(" + tanh gradient", 200, 0)).seconds, 0.5 * slow);
}

// What was measured in a cache says little of what comes from memory: both are counted from rates of their
// own.
TEST(KernelTimes, APlanInACacheIsFarFromOneInMemory) {
  constexpr ThreadPeaks both{.flops = 1e11, .bytes = 1e10, .memory_bytes = 2e9, .cache = 1e7};
  const auto copy = [](double bytes, double set, double seconds) {
    return KernelTime{
        .kernel = "f32 copy, rows of 64", .bytes = bytes, .working_set = set, .seconds = seconds};
  };
  const KernelTimes times({copy(1e6, 9e6, 4e-4), copy(1e6, 4e7, 5.5e-4)}, both);
  const double seconds = times.estimate(copy(1e6, 2e7, 0)).seconds;
  EXPECT_NEAR(seconds, 5.5e-4, 0.1 * 5.5e-4);
}

TEST(KernelTimes, OfAFamilyThatNobodyMeasuredItsKindStandsIn) {
  const KernelTimes times({product(64, 3e-5)}, peaks);
  KernelTime other = product(64, 0);
  other.kernel = "f32 product, of another make";
  EXPECT_FALSE(times.estimate(other).known);
  EXPECT_NEAR(times.estimate(other).seconds, 3e-5, 1e-9);
  other.kernel = "f32 something else";
  EXPECT_GT(times.estimate(other).seconds, 0);
}

TEST(KernelTimes, WithoutAnyTimesThePeaksStand) {
  const KernelTimes times({}, peaks);
  const double seconds = times.estimate(product(256, 0)).seconds;
  EXPECT_NEAR(seconds, 2 * 256. * 256 * 256 / 1e11, 0.05 * seconds);
}

TEST(KernelTimes, AGroupThatIsLeftOutSaysNothing) {
  KernelTimes times({product(64, 3e-5), product(64, 9e-5)}, peaks);
  times.set_groups({0, 1});
  EXPECT_NEAR(times.estimate(product(64, 0), 1).seconds, 3e-5, 1e-9);
  EXPECT_NEAR(times.estimate(product(64, 0), 0).seconds, 9e-5, 1e-9);
}

constexpr const char* head = R"(
id = "box"
name = "a box"
style = "kernel-by-kernel"
[sources]
HOST = "measured"
[constants]
processors = { value = 2, unit = "", kind = "ME", source = "HOST" }
clock = { value = 3e9, unit = "Hz", kind = "ME", source = "HOST" }
peak_f32 = { value = 2e11, unit = "FLOP/s", kind = "ME", source = "HOST" }
peak_f16 = { value = 2e11, unit = "FLOP/s", kind = "ME", source = "HOST" }
matrix_efficiency = { value = 0.9, unit = "", kind = "ME", source = "HOST" }
memory = { value = 1e10, unit = "B", kind = "ME", source = "HOST" }
memory_rate = { value = 4e10, unit = "B/s", kind = "ME", source = "HOST" }
link_rate = { value = 4e10, unit = "B/s", kind = "ME", source = "HOST" }
host_rate = { value = 4e10, unit = "B/s", kind = "ME", source = "HOST" }
)";

std::string with_times(const std::string& rows) {
  return std::string(head) +
         "[kernels]\ninstructions = \"avx2\"\nthreads = 2\nstep_overhead = 1e-8\nuncertainty = 0.1\n"
         "[kernels.times]\n\"f32 softmax, 8 rows of 9\" = " +
         rows + "\n";
}

TEST(KernelTimes, AFileGivesThemBack) {
  const Machine machine =
      parse_machine(with_times("[[10, 20, 30, 1, 2, 4e-6], [11, 21, 31, 2, 2, 5e-6]]"), "box");
  ASSERT_TRUE(machine.processor());
  EXPECT_EQ(machine.processor()->threads, 2);
  ASSERT_EQ(machine.processor()->times.size(), 2u);
  EXPECT_EQ(machine.processor()->times[1].kernel, "f32 softmax, 8 rows of 9");
  EXPECT_EQ(machine.processor()->times[1].sharing, 2);
  EXPECT_DOUBLE_EQ(machine.processor()->times[1].seconds, 5e-6);
  EXPECT_NE(machine.digest(), parse_machine(head, "box").digest());
  EXPECT_FALSE(parse_machine(head, "box").processor());
}

TEST(KernelTimes, AFileThatHasThemWrongIsRefused) {
  for (const char* rows :
       {"3", "[[1, 2, 3]]", "[[10, 20, 30, 0, 2, 4e-6]]", "[[10, 20, 30, 1, 2, 0]]",
        "[[10, 20, 30, 1, 1e9, 4e-6]]", "[[10, -20, 30, 1, 2, 4e-6]]", "[[\"a\", 20, 30, 1, 2, 4e-6]]"})
    EXPECT_THROW(parse_machine(with_times(rows), "box"), Error) << rows;
}

}  // namespace
}  // namespace superstep::machine
