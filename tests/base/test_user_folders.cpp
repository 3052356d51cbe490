// Where the program keeps what is the user's, by the variables that say so.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "superstep/base/system/user_folders.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

class UserFolders : public ::testing::Test {
 protected:
  UserFolders() {
    for (const char* name : {"HOME", "SUPERSTEP_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TMPDIR"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
    }
    setenv("HOME", (folder_ / "home").c_str(), 1);
  }
  ~UserFolders() override {
    for (const char* name : {"HOME", "SUPERSTEP_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TMPDIR"})
      if (const auto found = before_.find(name); found != before_.end())
        setenv(name, found->second.c_str(), 1);
      else
        unsetenv(name);
  }

  std::map<std::string, std::string> before_;
  ScratchFolder folder_;
};

TEST_F(UserFolders, LieBelowHome) {
  EXPECT_EQ(user_data_folder(), folder_ / "home/.local/share/superstep");
  EXPECT_EQ(user_cache_folder(), folder_ / "home/.cache/superstep");
  EXPECT_TRUE(fs::is_directory(folder_ / "home/.local/share/superstep")) << "made when missing";
  EXPECT_TRUE(fs::is_directory(folder_ / "home/.cache/superstep"));
}

TEST_F(UserFolders, FollowTheDesktopsVariablesWhereTheyAreWholePaths) {
  setenv("XDG_DATA_HOME", (folder_ / "data").c_str(), 1);
  setenv("XDG_CACHE_HOME", "relative/cache", 1);
  EXPECT_EQ(user_data_folder(), folder_ / "data/superstep");
  EXPECT_EQ(user_cache_folder(), folder_ / "home/.cache/superstep") << "a relative one is ignored";
}

TEST_F(UserFolders, AreTheProgramsOwnWhereItsVariableSaysSo) {
  setenv("XDG_DATA_HOME", (folder_ / "data").c_str(), 1);
  setenv("SUPERSTEP_HOME", (folder_ / "own").c_str(), 1);
  EXPECT_EQ(user_data_folder(), folder_ / "own");
  EXPECT_EQ(user_cache_folder(), folder_ / "own/cache");
}

TEST_F(UserFolders, AreForTheUserAloneWhereTheyAreMade) {
  const mode_t mask = ::umask(0);
  setenv("SUPERSTEP_HOME", (folder_ / "a/own").c_str(), 1);
  const std::filesystem::path cache = user_cache_folder(),
                              folders[] = {cache, user_data_folder(), folder_ / "a"};
  ::umask(mask);
  for (const fs::path& folder : folders)
    EXPECT_EQ(fs::status(folder).permissions() & fs::perms::mask, fs::perms::owner_all) << folder;
}

// What is in the cache is run.
TEST_F(UserFolders, OthersMayNotWriteToTheCache) {
  const fs::path cache = user_cache_folder();
  fs::permissions(cache, fs::perms::owner_all | fs::perms::others_write);
  expect_error(ErrorCode::io, {"everybody may write", cache.string()}, [] { user_cache_folder(); });
  fs::permissions(cache, fs::perms::owner_all | fs::perms::group_all);
  EXPECT_NO_THROW(user_cache_folder()) << "a group of the user's own";
  if (::geteuid() != 0) return;
  constexpr gid_t strange = 12345;
  ASSERT_EQ(::chown(cache.c_str(), 0, strange), 0);
  fs::permissions(cache, fs::perms::owner_all | fs::perms::group_all);
  expect_error(ErrorCode::io, {"a group may write"}, [] { user_cache_folder(); });
  ASSERT_EQ(::chown(cache.c_str(), strange, 0), 0);
  expect_error(ErrorCode::io, {"another user"}, [] { user_cache_folder(); });
}

// No HOME: what the system knows of the user, whose home may be no folder of this machine.
TEST_F(UserFolders, AreFoundWithoutAHome) {
  unsetenv("HOME");
  setenv("TMPDIR", (folder_ / "").c_str(), 1);
  setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);  // so that nothing is left behind
  EXPECT_EQ(user_cache_folder(), folder_ / "cache/superstep");
}

}  // namespace
}  // namespace superstep
