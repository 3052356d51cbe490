#include "superstep/file/convert/file_states.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "superstep/base/encoding/sha256.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

// What cannot be looked at says so by reading it; here it is a name alone.
void add(Sha256& sum, const fs::path& path) {
  struct stat there {};
  const bool known = ::stat(path.c_str(), &there) == 0;
  const std::string line = known ? fmt::format("{}\n{} {} {}\n", path.string(), there.st_size,
                                               there.st_mtim.tv_sec, there.st_mtim.tv_nsec)
                                 : fmt::format("{}\n", path.string());
  sum.add(std::as_bytes(std::span(line)));
}

}  // namespace

std::string state_of_files(std::span<const fs::path> paths) {
  Sha256 sum;
  std::error_code none;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path, none)) {
      add(sum, path);
      continue;
    }
    std::vector<fs::path> inside;
    // Folders behind links are not gone into: they may lead back.
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator entry(path, options, none), end; entry != end;
         entry.increment(none))
      if (entry->is_symlink(none) || !entry->is_directory(none)) inside.push_back(entry->path());
    std::ranges::sort(inside);
    for (const fs::path& file : inside) add(sum, file);
  }
  return sum.hexadecimal();
}

}  // namespace superstep::data
