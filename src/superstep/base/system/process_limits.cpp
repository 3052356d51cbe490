#include "superstep/base/system/process_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace superstep {
namespace {

void set_soft_limit(decltype(RLIMIT_AS) resource, rlim_t value) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = std::min(value, limit.rlim_max);  // RLIM_INFINITY is the largest number
  setrlimit(resource, &limit);
}

rlim_t soft_limit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

rlim_t sum(rlim_t a, rlim_t b) { return b > RLIM_INFINITY - a ? RLIM_INFINITY : a + b; }

// The limit counts whole seconds from the start of the process.
rlim_t processor_time_after(double seconds) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double until = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1) + seconds;
  return until < 1e15 ? static_cast<rlim_t>(std::ceil(until)) : RLIM_INFINITY;
}

std::uint64_t address_space() {
  unsigned long long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void limit_memory(std::uint64_t bytes) {
  const std::uint64_t now = address_space();
  if (now > 0) set_soft_limit(RLIMIT_AS, sum(now, bytes));
}

void limit_processor_time(double seconds) { set_soft_limit(RLIMIT_CPU, processor_time_after(seconds)); }

void extend_processor_time(double seconds) {
  set_soft_limit(RLIMIT_CPU, std::max(soft_limit(RLIMIT_CPU), processor_time_after(seconds)));
}

Allowance::Allowance(std::uint64_t bytes) : bytes_(0) {
  const rlim_t before = soft_limit(RLIMIT_AS);
  if (before == RLIM_INFINITY) return;
  set_soft_limit(RLIMIT_AS, sum(before, bytes));
  bytes_ = soft_limit(RLIMIT_AS) - before;  // less where the system's own limit is lower
}

Allowance::~Allowance() {
  const rlim_t now = soft_limit(RLIMIT_AS);
  if (now != RLIM_INFINITY && bytes_ > 0) set_soft_limit(RLIMIT_AS, now - std::min<rlim_t>(now, bytes_));
}

Allowance::Allowance(Allowance&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}

}  // namespace superstep
