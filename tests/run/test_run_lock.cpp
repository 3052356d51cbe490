// One process at a time writes to a run's folder.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/run/train/run_lock.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace fs = std::filesystem;

TEST(RunLocks, HoldWhileTheyLive) {
  const ScratchFolder folder;
  {
    const RunLock lock(folder / "");
    EXPECT_TRUE(contains(read_text_file(folder / "lock"), "process " + std::to_string(::getpid()) + " on "));
    expect_error(ErrorCode::io, {"is being written to by process " + std::to_string(::getpid()), "Ctrl-C"},
                 [&] { const RunLock second(folder / ""); });
    EXPECT_TRUE(contains(read_text_file(folder / "lock"), "process ")) << "a refusal leaves the name there";
  }
  EXPECT_EQ(read_text_file(folder / "lock"), "") << "nobody's name stays behind";
  EXPECT_NO_THROW(RunLock(folder / ""));
}

TEST(RunLocks, AreOfOneFolder) {
  const ScratchFolder folder;
  fs::create_directories(folder / "a");
  fs::create_directories(folder / "b");
  const RunLock a(folder / "a");
  EXPECT_NO_THROW(RunLock(folder / "b"));
}

TEST(RunLocks, AFolderThatIsNotThereIsNamed) {
  const ScratchFolder folder;
  expect_error(ErrorCode::io, {"cannot write to the run's folder", "absent"},
               [&] { const RunLock lock(folder / "absent"); });
}

// The name in the file is another program's text: whatever stands there is told in one printable line.
TEST(RunLocks, ANameIsPrintable) {
  const ScratchFolder folder;
  const RunLock lock(folder / "");
  std::ofstream(folder / "lock") << "\x1b[2Jprocess\n";
  try {
    const RunLock second(folder / "");
    ADD_FAILURE() << "two locks";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
  }
  fs::resize_file(folder / "lock", 0);
  expect_error(ErrorCode::io, {"by another process"}, [&] { const RunLock second(folder / ""); });
}

// A second process, which ends as a killed one does: nothing is tidied up.
TEST(RunLocks, AFolderHasOneWriter) {
  const ScratchFolder folder;
  fs::create_directories(folder / "run");
  int ready[2], go[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(folder / "run");
    char byte = 0;
    (void)!::write(ready[1], "r", 1);
    (void)!::read(go[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  try {
    train(test::small_run(), {.out = folder / "run"});
    ADD_FAILURE() << "a second writer";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "is being written to by process " + std::to_string(child) + " on "));
  }
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  ::waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(train(test::small_run(), {.out = folder / "run"}))
      << "the lock of a dead process holds nobody up";
}

}  // namespace
}  // namespace superstep::run
