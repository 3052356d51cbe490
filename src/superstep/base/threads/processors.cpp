#include "superstep/base/threads/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "superstep/base/thread_pool.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

std::optional<int> whole(double quota, double period) {
  if (!(quota > 0 && period > 0)) return std::nullopt;
  return std::max(1, static_cast<int>(std::floor(quota / period)));
}

// "QUOTA PERIOD" in us, or "max PERIOD".
std::optional<int> read_maximum(const fs::path& file) {
  std::ifstream stream(file);
  double quota = 0, period = 0;
  return stream >> quota >> period ? whole(quota, period) : std::nullopt;
}

std::optional<int> read_version_1(const fs::path& folder) {
  std::ifstream quotas(folder / "cpu.cfs_quota_us"), periods(folder / "cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quotas >> quota && periods >> period ? whole(quota, period) : std::nullopt;
}

// The process's own group of version 2: the line "0::/PATH".
fs::path own_group(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) return fs::path(line.substr(4)).lexically_normal();
  return {};
}

int positive_variable(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  const int value = text ? std::atoi(text) : 0;  // of OMP_NUM_THREADS=8,2 the outermost level
  return value > 0 ? value : otherwise;
}

}  // namespace

std::optional<int> processors_of_group(const fs::path& root) {
  const fs::path groups = root / "sys/fs/cgroup";
  std::optional<int> least = read_version_1(groups / "cpu");
  const auto take = [&](std::optional<int> limit) {
    if (limit) least = least ? std::min(*least, *limit) : limit;
  };
  take(read_maximum(groups / "cpu.max"));
  fs::path folder = groups;
  for (const fs::path& part : own_group(root)) take(read_maximum((folder /= part) / "cpu.max"));
  return least;
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int may_run = sched_getaffinity(0, sizeof set, &set) == 0
                          ? CPU_COUNT(&set)
                          : static_cast<int>(std::thread::hardware_concurrency());
  static const std::optional<int> of_group = processors_of_group();  // read once: it is asked for often
  return std::max(1, of_group ? std::min(may_run, *of_group) : may_run);
}

int default_threads() {
  const int all = available_processors();
  return std::min(
      {all, positive_variable("SLURM_CPUS_PER_TASK", all), positive_variable("OMP_NUM_THREADS", all)});
}

}  // namespace superstep
