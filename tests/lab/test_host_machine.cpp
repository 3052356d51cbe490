// Measuring this machine: what is written can be read as a machine file, and holds what was measured.
#include <gtest/gtest.h>

#include <chrono>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/thread_pool.h"
#include "superstep/lab/machine/host_machine.h"
#include "superstep/lab/machine/host_times.h"
#include "superstep/lab/machine/peak_kernels.h"
#include "superstep/lab/machine/rates.h"
#include "superstep/machine/machine.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::lab {
namespace {

TEST(Rates, CountWhatTheLoopsDo) {
  float sink = 0;
  EXPECT_EQ(run_f32_fma(10, sink), 2.0 * 12 * f32_lanes() * 10);
  const auto triad = memory_work(61440, Access::triad), copy = memory_work(61440, Access::copy);
  EXPECT_NEAR(triad(2), 2 * 61440, 2 * 3 * 1024);
  EXPECT_EQ(copy(3), 3 * 61440);
}

TEST(Rates, TriadComputesWhatItSays) {
  alignas(64) float b[256], c[256], a[256];
  for (int i = 0; i < 256; ++i) b[i] = static_cast<float>(i), c[i] = static_cast<float>(1000 - i), a[i] = -1;
  triad_pass(reinterpret_cast<std::byte*>(b), reinterpret_cast<std::byte*>(c),
             reinterpret_cast<std::byte*>(a), sizeof a);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(a[i], b[i] + 0.5f * c[i]);
}

TEST(Rates, AFailureInAThreadReachesTheCaller) {
  EXPECT_THROW(measure_rates(
                   2, []() -> Work { throw Error(ErrorCode::out_of_memory, "none"); }, 1),
               Error);
}

TEST(Rates, EveryTrialIsThere) { EXPECT_EQ(measure_rates(2, f32_fma_work, 3).size(), 3U); }

TEST(Rates, AreGivenUpWhenTheUserAsks) {
  request_interrupt();
  EXPECT_THROW(measure_rates(2, f32_fma_work, 1000), Error);
  clear_interrupt();
  EXPECT_EQ(measure_rates(2, f32_fma_work, 2).size(), 2U);
}

// A thousand threads on a few processors take turns: each alone is as fast as ever, together they are not.
TEST(Rates, ThreadsBeyondTheProcessorsAddNothing) {
  const int processors = available_processors();
  EXPECT_EQ(measuring_threads(1000), processors);
  EXPECT_EQ(measuring_threads(0), 1);
  const double peak = best(measure_rates(processors, f32_fma_work, 40));
  EXPECT_LT(best(measure_rates(64 * processors, f32_fma_work, 40)), 3 * peak);
  EXPECT_EQ(memory_levels(1000).back().bytes, memory_levels(processors).back().bytes);
}

TEST(HostTimes, HaveRangesThatHoldThem) {
  for (const HostQuantity& q : {barrier_time(2), fork_join_time(2), allocation_time()}) {
    EXPECT_LE(q.low, q.value) << q.name;
    EXPECT_LE(q.value, q.high) << q.name;
    EXPECT_GT(q.value, 0) << q.name;
  }
}

// The best is what the machine can do; the range reaches to what half of the samples say.
TEST(HostTimes, AreTheBestOfTheirSamples) {
  const HostQuantity time = time_of("barrier", {3e-6, 1e-6, 2e-6, 9e-6, 8e-6}, "a note");
  EXPECT_EQ(time.value, 1e-6);
  EXPECT_EQ(time.low, 1e-6);
  EXPECT_EQ(time.high, 3e-6);
  EXPECT_EQ(time.unit, "s");
  const HostQuantity rate = rate_of("read", "B/s", {1e9, 3e9, 2e9}, "a note");
  EXPECT_EQ(rate.value, 3e9);
  EXPECT_EQ(rate.low, 2e9);
  EXPECT_EQ(rate.high, 3e9);
  EXPECT_EQ(rate.note, "a note");
}

// What was measured takes place within the time that the test takes: no rate is above what that allows, no
// time longer.
TEST(HostTimes, AreWithinTheTimeThatMeasuringTook) {
  const auto seconds = [](auto&& work) {
    const auto begun = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  };
  std::vector<HostQuantity> rates;
  const ScratchFolder folder;
  constexpr double bytes = 16 << 20;
  const double took = seconds([&] { rates = file_rates(folder / "", static_cast<std::size_t>(bytes)); });
  ASSERT_EQ(rates.size(), 3U);
  double least = 0;
  for (const HostQuantity& rate : rates) least += bytes / rate.high;
  EXPECT_LE(least, took);
  for (const HostQuantity& rate : rates) EXPECT_GE(rate.low * took, bytes) << rate.name;
  HostQuantity page;
  const double of_pages = seconds([&] { page = allocation_time(); });
  EXPECT_LE(page.value * 4096 * 30, of_pages);
}

TEST(HostTimes, AFolderThatCannotBeWrittenIsRefused) {
  try {
    file_rates("/proc/none", 1 << 20);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_TRUE(contains(error.what(), "--folder"));
  }
}

// All constants that the style wants, as measured ones.
std::string complete_file() {
  HostMachine machine{.id = "box", .name = "a box", .host = "here", .date = "2026-01-31"};
  for (const auto& spec : machine::constants_of(machine::Style::kernel_by_kernel))
    machine.constants.push_back(
        {std::string(spec.name), std::string(spec.unit), spec.name == "clock" ? 3.3e9 : 0.5, 0.4, 4e9, ""});
  machine.measured = {{"L1_copy_2", "B/s", 1e12, 1e11, 1e12, ""}};
  return to_toml(machine);
}

TEST(HostMachine, IsWrittenAsAMachineFile) {
  HostMachine machine{
      .id = "box", .name = "a \"fast\" one", .host = "here", .date = "2026-01-31", .busy = true};
  machine.constants = {{"clock", "Hz", 3.3e9, 3.2e9, 3.3e9, "note"}};
  machine.measured = {{"L1_copy_2", "B/s", 1e12 / 3, 1e11, 1e12 / 3, ""}};
  const std::string text = to_toml(machine);
  EXPECT_TRUE(contains(text, "id = \"box\"\nname = \"a \\\"fast\\\" one\"\nstyle = \"kernel-by-kernel\"\n"));
  EXPECT_TRUE(contains(text, "measured on here at 2026-01-31, while it had other work to do"));
  EXPECT_TRUE(contains(
      text, "clock = { value = 3.3e+09, unit = \"Hz\", kind = \"ME\", source = \"HOST\", range = ["));
  EXPECT_EQ(machine::parse_machine(complete_file(), "box.toml").value("clock"), 3.3e9);
  EXPECT_TRUE(contains(text, "[measured]\nL1_copy_2 = { value = 3.33333e+11"));
}

}  // namespace
}  // namespace superstep::lab
