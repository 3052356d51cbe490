#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "superstep/base/system/child_process.h"
#include "tests/base/locked_file.h"

namespace superstep {
namespace {

// A process that lives on a pipe: its end is the pipe's.
struct Grandchild {
  int pipe = -1;
  pid_t process = 0;

  bool ends_within(int milliseconds) const {
    pollfd watched{.fd = pipe, .events = POLLIN, .revents = 0};
    return poll(&watched, 1, milliseconds) == 1;
  }
};

// Of a child that is killed as soon as the grandchild runs, told before to end with its parent or not.
Grandchild of_a_killed_parent(bool told) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    if (told) setenv("SUPERSTEP_ENDS_WITH", std::to_string(getpid()).c_str(), 1);
    if (fork() == 0) {
      heed_parent();
      const pid_t own = getpid();
      if (write(ends[1], &own, sizeof own) != sizeof own) _exit(1);
      for (;;) pause();
    }
    for (;;) pause();
  }
  close(ends[1]);
  Grandchild grandchild{.pipe = ends[0]};
  EXPECT_EQ(read(ends[0], &grandchild.process, sizeof grandchild.process), sizeof grandchild.process);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  return grandchild;
}

TEST(ChildProcess, HoldsNoFileThatTheProgramHadOpen) {
  test::LockedFile file(std::filesystem::temp_directory_path() /
                        ("superstep-locked-" + std::to_string(::getpid())));
  const auto child = start_process({"sleep", "60"}, "/dev/null", Outlives::no);
  ASSERT_TRUE(child);
  EXPECT_TRUE(file.is_free_once_closed());
  kill(*child, SIGKILL);
  waitpid(*child, nullptr, 0);
}

TEST(ChildProcess, EndsWithAParentThatIsKilled) {
  const Grandchild grandchild = of_a_killed_parent(true);
  EXPECT_TRUE(grandchild.ends_within(10000));
  close(grandchild.pipe);
}

TEST(ChildProcess, LivesOnWhereItWasNotTold) {
  const Grandchild grandchild = of_a_killed_parent(false);
  EXPECT_FALSE(grandchild.ends_within(300));
  kill(grandchild.process, SIGKILL);
  EXPECT_TRUE(grandchild.ends_within(10000));
  close(grandchild.pipe);
}

// The variable goes to the child alone, and what the child starts has it no more (heed_parent).
TEST(ChildProcess, IsToldByItsSurroundings) {
  const auto told = [](Outlives outlives) {
    const auto child =
        start_process({"/bin/sh", "-c", "test \"$SUPERSTEP_ENDS_WITH\" = $PPID"}, "/dev/null", outlives);
    return child ? wait_for_process(*child) : 99;
  };
  EXPECT_EQ(told(Outlives::no), 0);
  EXPECT_EQ(told(Outlives::yes), 1);
}

}  // namespace
}  // namespace superstep
