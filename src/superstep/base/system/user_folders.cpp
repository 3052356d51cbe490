#include "superstep/base/system/user_folders.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

#include "superstep/base/error.h"
#include "superstep/base/file.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// A relative one would mean another folder in every place: the XDG specification has it ignored.
fs::path absolute_variable(const char* name) {
  fs::path path = variable(name);
  return path.is_absolute() ? path : fs::path();
}

fs::path home_in_system() {
  const passwd* const user = ::getpwuid(::geteuid());
  std::error_code ignored;
  if (!user || !user->pw_dir || !fs::is_directory(user->pw_dir, ignored)) return {};
  return fs::path(user->pw_dir).is_absolute() ? user->pw_dir : "";
}

// Everybody may write to /tmp: what is there under our name must be ours.
fs::path temporary_home() {
  const fs::path path = fs::temp_directory_path() / fmt::format("superstep-{}", ::geteuid());
  ::mkdir(path.c_str(), 0700);
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != ::geteuid())
    throw Error(ErrorCode::io, "is not a folder of this user", path.string(), "set HOME or SUPERSTEP_HOME");
  return path;
}

fs::path home() {
  if (fs::path given = absolute_variable("HOME"); !given.empty()) return given;
  if (fs::path known = home_in_system(); !known.empty()) return known;
  return temporary_home();
}

fs::path made(fs::path folder) {
  make_folder(folder);
  return folder;
}

fs::path user_folder(const char* below_own, const char* xdg_name, const char* below_home) {
  if (const fs::path own = variable("SUPERSTEP_HOME"); !own.empty())
    return made(*below_own ? own / below_own : own);
  if (const fs::path xdg = absolute_variable(xdg_name); !xdg.empty()) return made(xdg / "superstep");
  return made(home() / below_home / "superstep");
}

}  // namespace

fs::path user_data_folder() { return user_folder("", "XDG_DATA_HOME", ".local/share"); }
fs::path user_cache_folder() { return user_folder("cache", "XDG_CACHE_HOME", ".cache"); }

}  // namespace superstep
