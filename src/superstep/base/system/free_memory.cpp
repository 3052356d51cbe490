#include "superstep/base/system/free_memory.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

// The number after `label` where one is asked for, the first of the file otherwise; "max" is no number.
std::optional<double> read_number(const fs::path& path, const std::string& label = "") {
  std::ifstream file(path);
  double number = 0;
  if (label.empty()) return file >> number ? std::optional(number) : std::nullopt;
  for (std::string word, rest; file >> word; std::getline(file, rest))
    if (word == label) return file >> number ? std::optional(number) : std::nullopt;
  return std::nullopt;
}

// What a group may still take; its files lie in `folder` under the names of its version.
std::optional<double> left_in(const fs::path& folder, const char* most, const char* used,
                              const char* droppable) {
  const auto limit = read_number(folder / most), now = read_number(folder / used);
  if (!limit || !now) return std::nullopt;
  return std::max(1.0, *limit - *now + read_number(folder / "memory.stat", droppable).value_or(0));
}

std::optional<double> left_of_addresses(const fs::path& root) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const double pages = read_number(root / "proc/self/statm").value_or(0);
  return std::max(1.0,
                  static_cast<double>(limit.rlim_cur) - pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
}

}  // namespace

double available_memory(const fs::path& root) {
  const fs::path groups = root / "sys/fs/cgroup";
  std::optional<double> system = read_number(root / "proc/meminfo", "MemAvailable:");
  if (system) *system *= 1024;
  double least = 0;
  for (const auto& bytes :
       {system, left_in(groups, "memory.max", "memory.current", "inactive_file"),
        left_in(groups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        left_of_addresses(root)})
    if (bytes) least = least > 0 ? std::min(least, *bytes) : *bytes;
  return least;
}

void require_memory(double bytes, const std::string& where) {
  constexpr double too_little_to_ask = 64e6;  // the question costs more than such an allocation
  if (bytes <= too_little_to_ask) return;
  const double free = available_memory();
  if (free > 0 && bytes > free)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("needs {} of memory, and {} are free", format_bytes(bytes), format_bytes(free)),
                where);
}

}  // namespace superstep
