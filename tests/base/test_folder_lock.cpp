// One process at a time writes to a folder.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/folder_lock.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

TEST(FolderLocks, HoldWhileTheyLive) {
  const ScratchFolder folder;
  {
    const FolderLock lock(folder / "");
    EXPECT_TRUE(contains(read_text_file(folder / "lock"), "process " + std::to_string(::getpid()) + " on "));
    expect_error(ErrorCode::io, {"is being written to by process " + std::to_string(::getpid()), "Ctrl-C"},
                 [&] { const FolderLock second(folder / ""); });
    EXPECT_TRUE(contains(read_text_file(folder / "lock"), "process ")) << "a refusal leaves the name there";
  }
  EXPECT_EQ(read_text_file(folder / "lock"), "") << "nobody's name stays behind";
  EXPECT_NO_THROW(FolderLock(folder / ""));
}

TEST(FolderLocks, WhatAKilledProcessWasWritingIsSwept) {
  const ScratchFolder folder;
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const fs::path half = folder / ("state.partial-" + std::to_string(gone) + "-0");
  const fs::path own = folder / ("state.partial-" + std::to_string(::getpid()) + "-0");
  std::ofstream(half) << "half";
  std::ofstream(own) << "half";
  const FolderLock lock(folder / "");
  EXPECT_FALSE(fs::exists(half));
  EXPECT_TRUE(fs::exists(own));
}

TEST(FolderLocks, AreOfOneFolder) {
  const ScratchFolder folder;
  fs::create_directories(folder / "a");
  fs::create_directories(folder / "b");
  const FolderLock a(folder / "a");
  EXPECT_NO_THROW(FolderLock(folder / "b"));
}

TEST(FolderLocks, AFolderThatIsNotThereIsNamed) {
  const ScratchFolder folder;
  expect_error(ErrorCode::io, {"cannot write to the folder", "absent"},
               [&] { const FolderLock lock(folder / "absent"); });
}

// What a process leaves that is killed at once is nothing yet: whoever comes next may begin there.
TEST(FolderLocks, AFolderWithALockAndHalfAFileHoldsNothing) {
  const ScratchFolder folder;
  EXPECT_TRUE(holds_nothing(folder / "absent"));
  EXPECT_TRUE(holds_nothing(folder / ""));
  std::ofstream(folder / "lock") << "process 1 on here\n";
  std::ofstream(folder / "study.json.partial-7636-1") << "{";
  EXPECT_TRUE(holds_nothing(folder / ""));
  std::ofstream(folder / "notes.txt") << "mine";
  EXPECT_FALSE(holds_nothing(folder / ""));
}

// A child that has ended and that nobody has waited for keeps its number, and writes nothing more.
TEST(FolderLocks, WhatAnEndedChildWasWritingIsSwept) {
  const ScratchFolder folder;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t state{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOWAIT), 0);
  const fs::path left = folder / ("study.json.partial-" + std::to_string(child) + "-1");
  std::ofstream(left) << "{";
  { const FolderLock lock(folder / ""); }
  EXPECT_FALSE(fs::exists(left));
  ::waitpid(child, nullptr, 0);
}

// The name in the file is another program's text: whatever stands there is told in one printable line.
TEST(FolderLocks, ANameIsPrintable) {
  const ScratchFolder folder;
  const FolderLock lock(folder / "");
  std::ofstream(folder / "lock") << "\x1b[2Jprocess\n";
  try {
    const FolderLock second(folder / "");
    ADD_FAILURE() << "two locks";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
  }
  fs::resize_file(folder / "lock", 0);
  expect_error(ErrorCode::io, {"by another process"}, [&] { const FolderLock second(folder / ""); });
}

}  // namespace
}  // namespace superstep
