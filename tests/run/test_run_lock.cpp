// One process at a time writes to a run's folder.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "superstep/base/error.h"
#include "superstep/base/system/folder_lock.h"
#include "tests/contains.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace fs = std::filesystem;

// A second process, which ends as a killed one does: nothing is tidied up.
TEST(RunLocks, AFolderHasOneWriter) {
  const ScratchFolder folder;
  fs::create_directories(folder / "run");
  int ready[2], go[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder / "run");
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
