// What every result says of the machine: every group is there, and null stands for what is not known.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/record/environment.h"
#include "superstep/record/host_load.h"
#include "tests/scratch.h"

namespace superstep::record {
namespace {

TEST(HostLoad, ReadsTheKernelsTimes) {
  const auto time = parse_processor_time("cpu  100 0 50 800 50 0 0 25 0 0\ncpu0 1 2", 100);
  ASSERT_TRUE(time);
  EXPECT_NEAR(time->total, 10.25, 1e-12);
  EXPECT_NEAR(time->idle, 8.5, 1e-12);
  EXPECT_NEAR(time->stolen, 0.25, 1e-12);
  for (const char* bad :
       {"", "cpu", "cpu  1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu  1 2 3 4 5 6 7 x", "cpu -1 2 3 4 5 6 7 8"})
    EXPECT_FALSE(parse_processor_time(bad, 100)) << bad;
}

// Ticks of all processors: this process takes next to nothing of the hours that pass in the file.
TEST(HostLoad, SharesOutTheTimeThatPassed) {
  const ScratchFolder folder;
  const auto stat = folder / "stat";
  const auto write = [&](long user, long idle, long stolen) {
    write_file_atomically(stat, fmt::format("cpu  {} 0 0 {} 0 0 0 {} 0 0\ncpu0 1 2\n", user, idle, stolen));
  };
  write(5'000'000, 7'000'000, 100'000);
  const HostLoad load(stat);
  EXPECT_TRUE(load.warning().empty()) << "no time has passed";
  EXPECT_TRUE(load.record()["busy"].is_null());

  write(5'000'000 + 610'000, 7'000'000 + 370'000, 100'000 + 20'000);
  nlohmann::json record = load.record();
  EXPECT_NEAR(record["others_share"], 0.61, 1e-3);
  EXPECT_NEAR(record["stolen_share"], 0.02, 1e-12);
  EXPECT_EQ(record["busy"], true);
  EXPECT_EQ(load.warning(), "the machine was busy: 61 % of its processors' time went to other work");

  write(5'000'000 + 500'000, 7'000'000 + 400'000, 100'000 + 100'000);
  EXPECT_EQ(load.warning(),
            "the machine was busy: 50 % of its processors' time went to other work, 10 % to the hypervisor");

  write(5'000'000 + 100'000, 7'000'000 + 300'000, 100'000 + 600'000);
  EXPECT_EQ(load.warning(),
            "the machine was busy: 10 % of its processors' time went to other work, 60 % to the hypervisor");

  write(5'000'000 + 30'000, 7'000'000 + 970'000, 100'000);
  EXPECT_EQ(load.record()["busy"], false);
  EXPECT_TRUE(load.warning().empty());

  write(5'000'000 + 30'000, 7'000'000 + 930'000, 100'000 + 40'000);
  EXPECT_EQ(load.record()["busy"], true) << "what others and the hypervisor take together";

  write_file_atomically(stat, "no such form\n");
  EXPECT_TRUE(load.record()["others_share"].is_null());
  EXPECT_TRUE(load.warning().empty());
}

TEST(Environment, HasEveryGroupAndNullForWhatIsNotKnown) {
  const HostLoad load;
  const nlohmann::json record = environment_record(2, &load);
  for (const char* group : {"date", "program", "host", "placement", "device", "software", "data"})
    EXPECT_TRUE(record.contains(group)) << group;
  for (const char* field :
       {"hostname", "processor", "sockets", "cores", "hardware_threads", "numa_nodes", "caches", "clock",
        "smt", "memory_bytes", "aslr", "huge_pages", "load_average", "load"})
    EXPECT_TRUE(record["host"].contains(field)) << field;
  EXPECT_EQ(record["placement"]["threads"], 2);
  EXPECT_TRUE(record["placement"]["numa_policy"].is_null());
  EXPECT_TRUE(environment_record(1)["host"]["load"].is_null());
}

TEST(Environment, SaysOfWhichJobItIsPart) {
  for (const char* name : {"SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_JOB_NODELIST"}) ::unsetenv(name);
  const nlohmann::json outside = environment_record(1)["placement"];
  ::setenv("SLURM_JOB_ID", "4711", 1);
  ::setenv("SLURM_NTASKS", "8", 1);
  ::setenv("SLURM_JOB_NODELIST", "secret[1-2]", 1);
  const nlohmann::json job = environment_record(1)["placement"]["job"];
  EXPECT_EQ(job["SLURM_JOB_ID"], "4711");
  EXPECT_EQ(job["SLURM_NTASKS"], "8");
  EXPECT_FALSE(job.contains("SLURM_JOB_NODELIST")) << "hosts have names";
  for (const char* name : {"SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_JOB_NODELIST"}) ::unsetenv(name);
  EXPECT_EQ(environment_record(1)["placement"], outside);
}

TEST(Environment, SaysWhatTheKernelIsSetTo) {
  std::ifstream file("/proc/sys/kernel/randomize_va_space");
  std::string line;
  if (!std::getline(file, line)) GTEST_SKIP() << "/proc says nothing of address space layout";
  EXPECT_EQ(environment_record(1)["host"]["aslr"], line);
}

TEST(Environment, NamesTheProcessorsItMayRunOn) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &before)) allowed.push_back(cpu);
  EXPECT_EQ(environment_record(1)["placement"]["affinity"], nlohmann::json(allowed));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(allowed.back(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(environment_record(1)["placement"]["affinity"], nlohmann::json({allowed.back()}));
  sched_setaffinity(0, sizeof before, &before);
}

// /proc/cpuinfo says MHz, and the clock may change from one look to the next.
TEST(Environment, SaysTheClockInHertz) {
  std::ifstream file("/proc/cpuinfo");
  double megahertz = 0;
  for (std::string line; std::getline(file, line) && megahertz == 0;)
    if (line.starts_with("cpu MHz")) megahertz = std::stod(line.substr(line.find(": ") + 2));
  if (megahertz == 0) GTEST_SKIP() << "/proc/cpuinfo says no clock";
  const double hertz = environment_record(1)["host"]["clock"]["observed"];
  EXPECT_GT(hertz, megahertz * 1e6 / 20);
  EXPECT_LT(hertz, megahertz * 1e6 * 20);
}

TEST(Environment, CountsTheProcessorsAndTheMemoryOfThisHost) {
  const nlohmann::json host = environment_record(1)["host"];
  EXPECT_GE(host["hardware_threads"], 1);
  EXPECT_LE(host["hardware_threads"], sysconf(_SC_NPROCESSORS_ONLN));  // a container may be given fewer
  EXPECT_EQ(host["memory_bytes"], sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

}  // namespace
}  // namespace superstep::record
