#include "superstep/base/system/partial_files.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/system/regular_file.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view mark = ".partial-";

// The process of "NAME.partial-PID" or "NAME.partial-PID-N"; nothing of another name.
std::optional<pid_t> writer_of(std::string_view name) {
  const std::size_t at = name.rfind(mark);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const char* const last = name.data() + name.size();
  pid_t process = 0;
  const auto [end, code] = std::from_chars(name.data() + at + mark.size(), last, process);
  if (code != std::errc() || process < 1) return std::nullopt;
  if (end == last) return process;
  unsigned number = 0;
  if (*end != '-') return std::nullopt;
  const auto [number_end, number_code] = std::from_chars(end + 1, last, number);
  return number_code == std::errc() && number_end == last ? std::optional(process) : std::nullopt;
}

// One that has ended writes nothing more, though its number is kept until somebody asks how it ended.
bool has_ended(pid_t process) {
  const fs::path path = fmt::format("/proc/{}/stat", process);
  std::string line;
  try {
    std::ifstream file = open_regular_file(path);
    std::getline(file, line);
  } catch (const Error&) {
    return false;
  }
  const std::size_t name = line.rfind(") ");  // the name may hold anything
  return name != std::string::npos && name + 2 < line.size() &&
         (line[name + 2] == 'Z' || line[name + 2] == 'X');
}

bool is_gone(pid_t process) { return (::kill(process, 0) != 0 && errno == ESRCH) || has_ended(process); }

bool untouched_for(const fs::path& path, std::chrono::seconds age) {
  std::error_code code;
  const auto written = fs::last_write_time(path, code);
  return !code && fs::file_time_type::clock::now() - written >= age;
}

// The part of a path that ends in this process's mark: a file, or the folder that files are gathered in.
std::optional<fs::path> own_partial(const std::string& path) {
  const std::string own = fmt::format("{}{}", mark, ::getpid());
  const std::size_t at = path.find(own);
  if (at == std::string::npos) return std::nullopt;
  const fs::path found = path.substr(0, path.find('/', at));
  return writer_of(found.filename().string()) == ::getpid() ? std::optional(found) : std::nullopt;
}

}  // namespace

std::string partial_name(const fs::path& target) {
  std::error_code ignored;
  const fs::file_status there = fs::status(target, ignored);
  if (fs::is_other(there))
    throw Error(ErrorCode::io, "is a device or a pipe: a file cannot be put in its place", target.string(),
                "name a file");
  static std::atomic<unsigned> serial{0};
  return target.string() + fmt::format("{}{}-{}", mark, ::getpid(), serial++);
}

bool is_partial_name(const std::string& name) { return writer_of(name).has_value(); }

void sweep_partial_files(const fs::path& folder, std::chrono::seconds untouched) {
  std::error_code ignored;
  std::vector<fs::path> left;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored))
    if (const auto process = writer_of(entry->path().filename().string());
        process && is_gone(*process) && untouched_for(entry->path(), untouched))
      left.push_back(entry->path());
  for (const fs::path& path : left) fs::remove_all(path, ignored);
}

void sweep_partial_files_once(const fs::path& folder) {
  static std::mutex mutex;
  static auto* const swept = new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!swept->insert(folder.string()).second) return;
  }
  sweep_partial_files(folder);
}

void remove_open_partial_files() {
  std::error_code ignored;
  for (fs::directory_iterator entry("/proc/self/fd", ignored), end; entry != end; entry.increment(ignored)) {
    const fs::path open = fs::read_symlink(entry->path(), ignored);
    if (const auto partial = own_partial(open.string())) fs::remove_all(*partial, ignored);
  }
}

}  // namespace superstep
