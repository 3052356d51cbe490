// Files half written, places that cannot be written to, and folders of users without a home.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "superstep/base/file.h"
#include "superstep/base/system/partial_files.h"
#include "superstep/base/system/user_folders.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

class Folder : public ::testing::Test {
 protected:
  Folder() : path_(fs::temp_directory_path() / ("superstep-files-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() override { fs::remove_all(path_); }
  fs::path make(const std::string& name) {
    std::ofstream(path_ / name) << "half";
    return path_ / name;
  }
  const fs::path path_;
};

// The number of a process that has ended and been waited for.
pid_t gone() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST_F(Folder, WhatAKilledProcessLeftIsSweptAndNothingElse) {
  const std::string dead = std::to_string(gone()), alive = std::to_string(::getpid());
  const fs::path left = make("a.h5.partial-" + dead + "-0"), gathered = path_ / ("b.partial-" + dead);
  fs::create_directories(gathered / "set.000");
  const std::vector<fs::path> kept{make("a.h5"),
                                   make("a.h5.partial-" + alive + "-0"),
                                   make("notes.partial-" + dead + "-0.txt"),
                                   make("notes.partial-draft"),
                                   make("x.partial-" + dead + "-"),
                                   make(".partial-" + dead + "-1")};
  sweep_partial_files(path_);  // others may have touched them a moment ago, on another host
  EXPECT_TRUE(fs::exists(left));
  sweep_partial_files(path_, std::chrono::seconds(0));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(gathered));
  for (const fs::path& file : kept) EXPECT_TRUE(fs::exists(file)) << file;
}

TEST_F(Folder, WritingSweepsWhatHasLainForLong) {
  const fs::path left = make("a.txt.partial-" + std::to_string(gone()) + "-7");
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(1));
  write_file_atomically(path_ / "b.txt", "whole");
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(Folder, OpenPartialFilesOfThisProcessAreRemoved) {
  std::ofstream open(partial_name(path_ / "a.txt"));
  open << "half" << std::flush;
  std::ofstream other(path_ / "a.txt");
  ASSERT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 2);
  remove_open_partial_files();
  ASSERT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
  EXPECT_TRUE(fs::exists(path_ / "a.txt"));
}

TEST_F(Folder, PlacesThatCannotBeWrittenToAreKnownBefore) {
  EXPECT_NO_THROW(require_writable(path_ / "a.txt"));
  EXPECT_TRUE(fs::is_empty(path_)) << "nothing is left of the trial";
  EXPECT_THROW(require_writable(path_), Error);
  EXPECT_THROW(require_writable(path_ / "missing" / "a.txt"), Error);
  EXPECT_THROW(require_writable(path_ / std::string(300, 'x')), Error);
  EXPECT_THROW(require_writable("/proc/a.txt"), Error);
  EXPECT_NO_THROW(require_writable("/dev/null"));
  EXPECT_NO_THROW(require_writable_folder(path_));
  EXPECT_NO_THROW(require_writable_folder(path_ / "to" / "be" / "made"));
  EXPECT_FALSE(fs::exists(path_ / "to"));
  EXPECT_THROW(require_writable_folder(make("file")), Error);
  EXPECT_THROW(require_writable_folder("/proc/self/folder"), Error);
}

// In a process of its own: the environment belongs to all tests.
TEST_F(Folder, UsersWithoutAHomeHaveNothingInTheCurrentFolder) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const char* name : {"SUPERSTEP_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME"}) ::unsetenv(name);
    if (::chdir(path_.c_str()) != 0) ::_exit(2);
    int wrong = 0;
    try {
      wrong += !user_data_folder().is_absolute() + !user_cache_folder().is_absolute();
    } catch (const Error&) {  // a home that cannot be written to: it was sought outside all the same
    }
    ::setenv("HOME", (path_ / "home").c_str(), 1);
    wrong += user_cache_folder() != path_ / "home/.cache/superstep";
    ::setenv("XDG_CACHE_HOME", "relative", 1);
    wrong += user_cache_folder() != path_ / "home/.cache/superstep";
    ::setenv("XDG_CACHE_HOME", (path_ / "caches").c_str(), 1);
    wrong += user_cache_folder() != path_ / "caches/superstep";
    ::setenv("SUPERSTEP_HOME", (path_ / "own").c_str(), 1);
    wrong += user_cache_folder() != path_ / "own/cache";
    wrong += user_data_folder() != path_ / "own";
    ::_exit(wrong);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name == "home" || name == "caches" || name == "own") << name;
  }
}

// What has no end is refused, and a pipe is read to its own.
TEST_F(Folder, WhatHasNoEndIsRefused) {
  const auto refused = [](const fs::path& file, const std::string& part) {
    try {
      read_text_file(file);
      ADD_FAILURE() << file << " was read";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused("/dev/zero", "has no end");
  EXPECT_EQ(read_text_file("/dev/null"), "");
  fs::resize_file(make("sparse"), std::uintmax_t{1} << 40);
  refused(path_ / "sparse", "too large");
  const fs::path pipe = path_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << std::string(200'000, 'a') << "end"; });
  const std::string text = read_text_file(pipe);
  writer.join();
  EXPECT_EQ(text.size(), 200'003U);
  refused(pipe, "nobody writes");
}

// A pipe that nobody reads would be waited for without an end, before the work or after it.
TEST_F(Folder, APipeIsWrittenToWhereSomebodyReads) {
  const fs::path pipe = path_ / "out";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& write :
       {std::function<void()>([&] { require_writable(pipe); }),
        std::function<void()>([&] { write_file_atomically(pipe, std::string_view("a")); }),
        std::function<void()>([&] { append_line(pipe, "a"); })})
    try {
      write();
      ADD_FAILURE() << "was written";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("nobody reads"), std::string::npos) << error.what();
    }
  std::string heard;
  std::thread reader([&] {
    std::ifstream in(pipe);
    std::getline(in, heard);
  });
  for (bool open = false; !open;) try {
      require_writable(pipe);  // and who reads is not told that it is over
      open = true;
    } catch (const Error&) {  // the reader is not there yet
    }
  write_file_atomically(pipe, std::string_view("whole\n"));
  reader.join();
  EXPECT_EQ(heard, "whole");
}

// What is run from there is the user's own.
TEST_F(Folder, ACacheThatOthersMayWriteIsRefused) {
  const auto wrong_in_child = [&] {
    int wrong = 0;
    ::setenv("SUPERSTEP_HOME", (path_ / "own").c_str(), 1);
    ::umask(0);
    const fs::path cache = user_cache_folder();
    wrong += (fs::status(cache).permissions() & fs::perms::others_write) != fs::perms::none;
    fs::permissions(cache, fs::perms::all);
    try {
      user_cache_folder();
      ++wrong;
    } catch (const Error& error) {
      wrong += std::string(error.what()).find("everybody may write") == std::string::npos;
    }
    fs::permissions(cache, fs::perms::owner_all);
    wrong += user_cache_folder() != cache;
    if (::geteuid() == 0) {
      wrong += ::chown(cache.c_str(), 12345, 12345) != 0;
      try {
        user_cache_folder();
        ++wrong;
      } catch (const Error&) {
      }
    }
    return wrong;
  };
  const pid_t child = ::fork();
  if (child == 0) ::_exit(wrong_in_child());
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace superstep
