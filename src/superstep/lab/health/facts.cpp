#include "superstep/lab/health/facts.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "superstep/base/error.h"
#include "superstep/base/system/built_kernels.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/instruction_set.h"
#include "superstep/base/system/user_folders.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/base/threads/processors.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return {};
}

std::optional<double> load_of_last_minute() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? std::optional(load) : std::nullopt;
}

std::optional<std::uint64_t> limit(rlim_t value) {
  return value == RLIM_INFINITY ? std::nullopt : std::optional<std::uint64_t>(value);
}

// `folder` throws where it cannot be made.
template <class Folder>
FolderFacts folder_facts(Folder&& folder) {
  FolderFacts facts;
  try {
    const fs::path path = folder();
    facts.path = path.string();
    facts.writable = ::access(path.c_str(), W_OK | X_OK) == 0;
    std::error_code failed;
    const fs::space_info space = fs::space(path, failed);
    if (!failed) facts.free_bytes = static_cast<double>(space.available);
  } catch (const Error& error) {
    facts.path = error.where();
  }
  return facts;
}

bool in_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  if (!path) return false;
  for (const std::string& folder : split(path, ':'))
    if (!folder.empty() && ::access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
  return false;
}

void take_limits(HostFacts& facts) {
  rlimit files{}, stack{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0)
    facts.open_files = limit(files.rlim_cur), facts.most_open_files = limit(files.rlim_max);
  if (getrlimit(RLIMIT_STACK, &stack) == 0) facts.stack_bytes = limit(stack.rlim_cur);
}

}  // namespace

HostFacts host_facts() {
  HostFacts facts;
  facts.processor = processor_name();
  facts.processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  facts.usable = available_processors();
  facts.of_group = processors_of_group();
  facts.threads = default_threads();
  facts.instruction_set = name_of(instruction_set());
  facts.widest_instruction_set = name_of(available_instruction_sets().back());
  if (const auto set = widest_given_away()) facts.given_away_set = name_of(*set);
  facts.memory_bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  facts.available_bytes = available_memory();
  facts.load = load_of_last_minute();
  facts.huge_pages = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  facts.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  take_limits(facts);
  facts.data = folder_facts(user_data_folder);
  facts.cache = folder_facts(user_cache_folder);
  facts.has_ranks = run::has_ranks();
  facts.launched = run::launched_size();
  for (const char* launcher : {"mpirun", "srun"})
    if (in_path(launcher)) facts.launchers.emplace_back(launcher);
  facts.has_compiler = in_path("gcc");
  return facts;
}

}  // namespace superstep::lab
