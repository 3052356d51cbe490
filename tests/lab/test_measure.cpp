// The protocol, on a clock that tests set: what is steady, what is enough, what is flagged.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "superstep/base/error.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/lab/bench/energy_rows.h"
#include "superstep/lab/measure/load.h"
#include "superstep/lab/measure/protocol.h"
#include "tests/contains.h"

namespace superstep::lab {
namespace {

// Time passes only when a call takes it.
class FakeClock : public Clock {
 public:
  double seconds() override { return now; }
  void sleep_until(double when) override { now = std::max(now, when); }
  double now = 100;
};

Protocol short_protocol() {
  return {.warm_up_calls = 10,
          .warm_up_seconds = 0.01,
          .warm_up_limit = 1,
          .least_samples = 20,
          .budget_seconds = 1};
}

bool has_flag(const Measurement& measurement, const std::string& part) {
  for (const std::string& flag : measurement.flags)
    if (contains(flag, part)) return true;
  return false;
}

Measurement measure_times(FakeClock& clock, const Protocol& protocol, std::function<double(int)> time_of) {
  int call = 0;
  return measure({"x", [&] { clock.now += time_of(call++); }}, protocol, clock);
}

TEST(Protocol, AConstantCallIsTightAtOnce) {
  FakeClock clock;
  const Measurement m = measure_times(clock, short_protocol(), [](int) { return 0.002; });
  EXPECT_TRUE(m.steady);
  EXPECT_EQ(m.stop, StopReason::tight);
  EXPECT_EQ(m.samples.size(), 20U);
  EXPECT_NEAR(m.summary.median, 0.002, 1e-12);
  EXPECT_TRUE(m.flags.empty()) << m.flags.front();
}

TEST(Protocol, TheFirstCallsAreNotSamples) {
  FakeClock clock;
  const Measurement m = measure_times(clock, short_protocol(), [](int i) { return i < 8 ? 0.1 : 0.001; });
  EXPECT_NEAR(m.first_call, 0.1, 1e-9);
  EXPECT_GE(m.warm_up_calls, 10);
  for (double sample : m.samples) EXPECT_NEAR(sample, 0.001, 1e-9);
}

TEST(Protocol, WarmUpThatNeverSettlesEndsAndSaysSo) {
  FakeClock clock;
  const Measurement m =
      measure_times(clock, short_protocol(), [](int i) { return 0.001 * std::pow(1.05, i % 100); });
  EXPECT_TRUE(has_flag(m, "warm-up ended at its limit"));
}

TEST(Protocol, NoiseTakesSamplesUntilTheBudgetEnds) {
  FakeClock clock;
  std::mt19937 random(1);
  Protocol protocol = short_protocol();
  protocol.interval = 1e-9;
  const Measurement m =
      measure_times(clock, protocol, [&](int) { return 0.001 + 1e-4 * (random() % 1000) / 1000.0; });
  EXPECT_EQ(m.stop, StopReason::budget);
  EXPECT_NEAR(static_cast<double>(m.samples.size()), 1 / 0.00105, 20);
}

TEST(Protocol, ASlowCallStillGivesThreeSamplesAndSaysThatTheyAreFew) {
  FakeClock clock;
  const Measurement m = measure_times(clock, short_protocol(), [](int) { return 30.0; });
  EXPECT_EQ(m.warm_up_calls, 1);
  EXPECT_EQ(m.samples.size(), 3U);
  EXPECT_TRUE(has_flag(m, "3 samples, 20 wanted"));
}

TEST(Protocol, FastCallsAreTimedManyAtATime) {
  FakeClock clock;
  const Measurement m = measure_times(clock, short_protocol(), [](int) { return 1e-7; });
  EXPECT_GE(m.calls_per_sample, 500);
  EXPECT_NEAR(m.summary.median, 1e-7, 1e-12);
}

TEST(Protocol, AnIntervalIsNotTightBeforeTheMachineHadTimeToChange) {
  FakeClock clock;
  Protocol protocol = short_protocol();
  protocol.least_seconds = 0.5;
  const Measurement m = measure_times(clock, protocol, [](int) { return 0.001; });
  EXPECT_EQ(m.stop, StopReason::tight);
  EXPECT_GE(m.samples.size(), 500U);
}

TEST(Protocol, DriftIsFlagged) {
  FakeClock clock;
  Protocol protocol = short_protocol();
  protocol.interval = 1e-9;
  const Measurement m = measure_times(clock, protocol, [&](int i) { return 0.001 * (1 + i * 0.0005); });
  EXPECT_GT(m.summary.drift, 0.05);
  EXPECT_TRUE(has_flag(m, "drift +"));
}

TEST(Protocol, OutliersAreFlaggedAndKept) {
  FakeClock clock;
  Protocol protocol = short_protocol();
  protocol.interval = 0;
  const Measurement m =
      measure_times(clock, protocol, [](int i) { return i % 10 == 9 ? 0.05 : 0.001 + 1e-6 * (i % 7); });
  EXPECT_TRUE(has_flag(m, "outliers"));
  EXPECT_NEAR(m.summary.max, 0.05, 1e-9);
  EXPECT_NEAR(m.summary.median, 0.001, 1e-4);
}

TEST(Protocol, ContendersAreInterleaved) {
  FakeClock clock;
  std::string order;
  const auto contender = [&](char name) {
    return Contender{std::string(1, name), [&, name] { clock.now += 0.001, order += name; }};
  };
  const std::vector<Contender> both{contender('a'), contender('b')};
  Protocol protocol = short_protocol();
  protocol.samples_a_turn = 1;
  const auto results = measure_interleaved(both, protocol, clock);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].name, "a");
  // A turn is a call that is not timed and a sample; a round is a turn each.
  const std::string timed = order.substr(order.size() - 80);
  for (std::size_t i = 0; i < timed.size(); i += 4) {
    EXPECT_EQ(timed[i], timed[i + 1]) << timed;
    EXPECT_EQ(timed[i + 2], timed[i + 3]) << timed;
    EXPECT_NE(timed[i], timed[i + 2]) << timed;
  }
  EXPECT_NE(timed.find("aabb"), std::string::npos);
  EXPECT_NE(timed.find("bbaa"), std::string::npos);  // the order within a round is drawn
  EXPECT_EQ(results[0].samples.size(), 20U);
}

TEST(Protocol, TheFirstCallOfATurnIsNotTimed) {
  FakeClock clock;
  char last = ' ';
  const auto contender = [&](char name) {  // ten times slower after the other one
    return Contender{std::string(1, name),
                     [&, name] { clock.now += last == name ? 0.001 : 0.01, last = name; }};
  };
  const std::vector<Contender> both{contender('a'), contender('b')};
  for (const Measurement& m : measure_interleaved(both, short_protocol(), clock))
    EXPECT_NEAR(m.summary.max, 0.001, 1e-9);
}

// --- load

TEST(Load, ASingleStreamWaitsForNothing) {
  FakeClock clock;
  const LoadReport report = run_load([&] { clock.now += 0.002; }, {.requests = 200}, clock);
  EXPECT_NEAR(report.throughput, 500, 1e-6);
  EXPECT_NEAR(report.latency[100], 0.002, 1e-9);
  EXPECT_NEAR(report.queueing[100], 0, 1e-9);
}

TEST(Load, OfflineRequestsWaitForThoseBefore) {
  FakeClock clock;
  const LoadReport report =
      run_load([&] { clock.now += 0.001; }, {.pattern = LoadPattern::offline, .requests = 100}, clock);
  EXPECT_NEAR(report.latency.back(), 0.1, 1e-9);
  EXPECT_NEAR(report.busy_share, 1, 1e-9);
}

// An M/D/1 queue at half load waits rho / (2 mu (1 - rho)) = half a service time on the average
// (Pollaczek and Khinchine).
TEST(Load, PoissonArrivalsQueueAsTheyMust) {
  FakeClock clock;
  const LoadSettings settings{
      .pattern = LoadPattern::poisson, .rate = 500, .requests = 200000, .most_seconds = 1e9};
  const LoadReport report = run_load([&] { clock.now += 0.001; }, settings, clock);
  double sum = 0;
  for (double wait : report.queueing) sum += wait;
  EXPECT_NEAR(sum / 200000, 0.0005, 0.00002);
  EXPECT_NEAR(report.busy_share, 0.5, 0.01);
  EXPECT_TRUE(report.flags.empty());
}

TEST(Load, TooHighARateIsFlagged) {
  FakeClock clock;
  const LoadReport report = run_load(
      [&] { clock.now += 0.001; }, {.pattern = LoadPattern::poisson, .rate = 3000, .requests = 2000}, clock);
  ASSERT_EQ(report.flags.size(), 1U);
  EXPECT_TRUE(contains(report.flags[0], "overloaded"));
}

TEST(Load, PercentilesNeedEnoughRequests) {
  FakeClock clock;
  const auto names = [&](std::int64_t requests) {
    std::string all;
    for (const Metric& m :
         metrics_of(run_load([&] { clock.now += 1e-3; }, {.requests = requests}, clock), ""))
      all += m.name + " ";
    return all;
  };
  EXPECT_FALSE(contains(names(99), "latency_p90"));
  EXPECT_TRUE(contains(names(100), "latency_p90"));
  EXPECT_FALSE(contains(names(999), "latency_p99"));
  EXPECT_TRUE(contains(names(1000), "latency_p99"));
}

TEST(Load, RefusesARateThatIsNone) {
  FakeClock clock;
  try {
    run_load([] {}, {.pattern = LoadPattern::poisson, .rate = 0}, clock);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "need a rate above 0"));
  }
  EXPECT_THROW(load_pattern_from_name("bursty"), Error);
}

// --- memory

class MemoryFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("superstep_memory_" + std::to_string(getpid()));
    write("proc/meminfo", "MemTotal: 16000000 kB\nMemFree: 100 kB\nMemAvailable: 4000000 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  std::filesystem::path root_;
};

TEST_F(MemoryFiles, TheSystemsEstimateCountsWhereNothingElseDoes) {
  EXPECT_EQ(available_memory(root_), 4000000.0 * 1024);
  write("sys/fs/cgroup/memory.max", "max");
  write("sys/fs/cgroup/memory.current", "1000");
  EXPECT_EQ(available_memory(root_), 4000000.0 * 1024);
  EXPECT_EQ(available_memory(root_ / "none"), 0);
}

TEST_F(MemoryFiles, AGroupsLimitCountsWithoutWhatCanBeDropped) {
  write("sys/fs/cgroup/memory.max", "1000000");
  write("sys/fs/cgroup/memory.current", "900000");
  write("sys/fs/cgroup/memory.stat", "anon 5\ninactive_file 300000\nfile 7");
  EXPECT_EQ(available_memory(root_), 400000);
}

TEST_F(MemoryFiles, AGroupOfTheFirstVersionCountsToo) {
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "900000");
  EXPECT_EQ(available_memory(root_), 100000);
}

// --- energy

class EnergyFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("superstep_energy_" + std::to_string(getpid()));
    std::filesystem::create_directories(root_ / "intel-rapl:0");
    std::filesystem::create_directories(root_ / "intel-rapl:0:0");
    write("intel-rapl:0/name", "package-0");
    write("intel-rapl:0/max_energy_range_uj", "1000000");
    write("intel-rapl:0:0/name", "core");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    std::ofstream(root_ / file) << text << "\n";
  }
  std::filesystem::path root_;
};

TEST_F(EnergyFiles, AreSummedAcrossAnOverflow) {
  write("intel-rapl:0/energy_uj", "900000");
  EnergyMeter meter(root_);
  ASSERT_TRUE(meter.available());
  EXPECT_EQ(meter.source(), "RAPL: package-0");
  meter.sample();
  write("intel-rapl:0/energy_uj", "950000");
  meter.sample();
  write("intel-rapl:0/energy_uj", "100000");
  meter.sample();
  EXPECT_NEAR(meter.joules(), 0.2, 1e-12);
}

TEST_F(EnergyFiles, GiveTheEnergyOfARegion) {
  FakeClock clock;
  double joules = 0.2;
  const auto call = [&] {
    clock.now += 0.25;
    joules += 0.25 * 0.05;  // 50 mW
    write("intel-rapl:0/energy_uj", std::to_string(static_cast<long>(joules * 1e6 + 0.5) % 1000000));
  };
  write("intel-rapl:0/energy_uj", "200000");
  EnergyMeter meter(root_);
  const EnergyReport report = measure_energy(call, meter, 10, clock);
  EXPECT_EQ(report.calls, 40);
  EXPECT_NEAR(report.seconds, 10, 1e-9);
  EXPECT_NEAR(report.joules, 0.5, 1e-5);
  EXPECT_NEAR(report.power_max, 0.05, 1e-4);
}

TEST_F(EnergyFiles, GiveJoulesASample) {
  FakeClock clock;
  double joules = 0;
  const auto call = [&] {
    clock.now += 0.5;
    joules += 0.5 * 0.1;  // 100 mW
    write("intel-rapl:0/energy_uj", std::to_string(static_cast<long>(joules * 1e6 + 0.5) % 1000000));
  };
  write("intel-rapl:0/energy_uj", "0");
  record::Result result;
  add_energy(result, call, 64, EnergyMeter(root_), clock);
  EXPECT_NEAR(result.find("energy")->value, 1, 1e-6);
  EXPECT_NEAR(result.find("energy_per_sample")->value, 0.05 / 64, 1e-9);
  EXPECT_EQ(result.find("energy_per_sample")->unit, "J");
  EXPECT_NEAR(result.find("power_mean")->value, 0.1, 1e-6);
  EXPECT_EQ(result.config["energy"], "RAPL: package-0");
}

TEST_F(EnergyFiles, WithoutCountersNothingIsMadeUp) {
  FakeClock clock;
  record::Result result;
  add_energy(
      result, [] { FAIL() << "called for nothing"; }, 1, EnergyMeter(root_ / "none"), clock);
  EXPECT_TRUE(result.quantities.empty());
  EXPECT_EQ(result.config["energy"], "absent: the host shows no energy counters");
}

TEST_F(EnergyFiles, ThatAreNotThereAreSaidToBeMissing) {
  EXPECT_TRUE(
      contains(EnergyMeter(root_).reason(), "may not be read"));  // no counter in the package's folder
  const EnergyMeter none(root_ / "none");
  EXPECT_FALSE(none.available());
  EXPECT_EQ(none.reason(), "the host shows no energy counters");
}

}  // namespace
}  // namespace superstep::lab
