#include "superstep/base/system/user_folders.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>
#include <vector>

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

// For the user alone where it is made here, whatever the mask of new files says (XDG asks for that, too):
// what is kept says what the user works on.
fs::path made(fs::path folder) {
  std::error_code ignored;
  std::vector<fs::path> anew;  // those above it, too
  for (fs::path each = folder; !each.empty() && !fs::exists(each, ignored); each = each.parent_path())
    anew.push_back(each);
  make_folder(folder);
  for (const fs::path& each : anew) ::chmod(each.c_str(), 0700);
  return folder;
}

fs::path path_of(const char* below_own, const char* xdg_name, const char* below_home) {
  if (const fs::path own = variable("SUPERSTEP_HOME"); !own.empty())
    return *below_own ? own / below_own : own;
  if (const fs::path xdg = absolute_variable(xdg_name); !xdg.empty()) return xdg / "superstep";
  return home() / below_home / "superstep";
}

}  // namespace

namespace {

// Machine code and plans are taken from there as they are: what others may write there, they have run by us.
fs::path of_this_user(const fs::path& path) {
  fs::path folder = made(path);
  struct stat found {};
  const bool known = ::stat(folder.c_str(), &found) == 0;
  const bool of_others = known && found.st_uid != ::geteuid() && found.st_uid != 0;
  // A group that is the user's own, as distributions give each one, is nobody else.
  const bool by_group = (found.st_mode & S_IWGRP) != 0 && found.st_gid != ::getegid() && found.st_gid != 0;
  if (of_others || by_group || (found.st_mode & S_IWOTH) != 0)
    throw Error(ErrorCode::io,
                of_others  ? "the cache belongs to another user"
                : by_group ? "a group may write to the cache"
                           : "everybody may write to the cache",
                folder.string(), "chmod go-w it, remove it, or set SUPERSTEP_HOME to a folder of your own");
  return folder;
}

}  // namespace

fs::path user_data_folder() { return made(path_of("", "XDG_DATA_HOME", ".local/share")); }
fs::path user_cache_folder() { return of_this_user(path_of("cache", "XDG_CACHE_HOME", ".cache")); }

}  // namespace superstep
