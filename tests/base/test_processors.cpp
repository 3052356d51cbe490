// How many processors a process may use: groups of processes in files of the test's own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "superstep/base/thread_pool.h"
#include "superstep/base/threads/processors.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

class Groups : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::optional<int> limit() const { return processors_of_group(root_ / ""); }
  ScratchFolder root_;
};

TEST_F(Groups, LimitNothingWhereTheySayNothing) {
  EXPECT_EQ(limit(), std::nullopt);
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(limit(), std::nullopt);
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), std::nullopt);
  write("sys/fs/cgroup/cpu.max", "what\n");
  EXPECT_EQ(limit(), std::nullopt);
}

TEST_F(Groups, LimitToWholeProcessors) {
  for (const auto& [text, processors] : {std::pair("400000 100000\n", 4),
                                         {"150000 100000\n", 1},
                                         {"20000 100000\n", 1},
                                         {"299999 100000\n", 2}}) {
    write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(limit(), processors) << text;
  }
}

TEST_F(Groups, LimitByTheTightestOnTheWay) {
  write("proc/self/cgroup", "12:cpu,cpuacct:/x\n0::/batch/job/step\n");
  write("sys/fs/cgroup/batch/cpu.max", "800000 100000\n");
  write("sys/fs/cgroup/batch/job/cpu.max", "300000 100000\n");
  write("sys/fs/cgroup/batch/job/step/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/other/cpu.max", "100000 100000\n");
  EXPECT_EQ(limit(), 3);
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 2);
}

TEST(DefaultThreads, AreNoMoreThanTheEnvironmentGives) {
  const int all = available_processors();
  for (const char* name : {"OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK"}) unsetenv(name);
  EXPECT_EQ(default_threads(), all);
  for (const char* name : {"OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK"}) {
    for (const auto& [text, threads] :
         {std::pair("1", 1), {"1,4", 1}, {"100000", all}, {"0", all}, {"-2", all}, {"", all}}) {
      setenv(name, text, 1);
      EXPECT_EQ(default_threads(), threads) << name << "=" << text;
    }
    unsetenv(name);
  }
}

}  // namespace
}  // namespace superstep
