// A program that does not look whether it should stop is ended, but not in the middle of what it holds.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "superstep/base/system/child_process.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/stops_when.h"
#include "tests/contains.h"

namespace superstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string last_words(const std::string& note) { return "ended: " + note + "\n"; }
std::string heard(const std::string& reason) { return "heard: " + reason + "\n"; }

struct Ended {
  int code = -1;
  double seconds = 0;  // since the signal
  std::string words;
};

// Runs `work` in a child as a program does, and asks it to stop when it has begun.
Ended stop(const std::function<void()>& work) {
  int begun[2], errors[2];
  EXPECT_EQ(::pipe(begun), 0);
  EXPECT_EQ(::pipe(errors), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(errors[1], STDERR_FILENO);
    watch_for_interrupts();
    end_when_asked(130, last_words, heard);
    (void)!::write(begun[1], "b", 1);
    work();
    ::_exit(7);
  }
  char byte = 0;
  EXPECT_EQ(::read(begun[0], &byte, 1), 1);
  std::this_thread::sleep_for(milliseconds(50));
  ::kill(child, SIGTERM);
  const auto asked = Clock::now();
  Ended ended;
  int status = 0;
  ::waitpid(child, &status, 0);
  ended.seconds = std::chrono::duration<double>(Clock::now() - asked).count();
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  char text[512] = {};
  ::close(errors[1]);
  const ssize_t size = ::read(errors[0], text, sizeof text - 1);
  ended.words.assign(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  for (const int each : {begun[0], begun[1], errors[0]}) ::close(each);
  return ended;
}

void never_look() {
  for (volatile bool on = true; on;) continue;
}

TEST(Interrupts, WhoDoesNotLookIsEnded) {
  const Ended ended = stop([] {
    const StopNote outer("outer"), inner("go on with b"), silent;
    never_look();
  });
  EXPECT_EQ(ended.code, 130);
  EXPECT_GT(ended.seconds, 0.3);
  EXPECT_EQ(ended.words, "ended: go on with b\n");
}

TEST(Interrupts, WhoLooksStopsByItself) {
  const Ended ended = stop([] {
    while (!interrupted()) std::this_thread::sleep_for(milliseconds(5));
  });
  EXPECT_EQ(ended.code, 7);
  EXPECT_EQ(ended.words, "");
}

TEST(Interrupts, WhatIsHeldIsFinished) {
  const Ended ended = stop([] {
    {
      const HoldEnd hold;
      while (!interrupted()) std::this_thread::sleep_for(milliseconds(5));
      std::this_thread::sleep_for(milliseconds(900));
      (void)!::write(STDERR_FILENO, "saved\n", 6);
    }
    never_look();
  });
  EXPECT_EQ(ended.code, 130);
  EXPECT_GE(ended.seconds, 0.85);
  EXPECT_EQ(ended.words, "saved\nended: \n");
}

TEST(Interrupts, WhatIsHeldForLongSaysWhy) {
  const Ended ended = stop([] {
    {
      const HoldEnd hold("it is saved"), silent;
      std::this_thread::sleep_for(milliseconds(900));
      (void)!::write(STDERR_FILENO, "saved\n", 6);
    }
    never_look();
  });
  EXPECT_EQ(ended.code, 130);
  EXPECT_EQ(ended.words, "heard: it is saved\nsaved\nended: \n");
}

TEST(Interrupts, WhatIsHeldForAMomentSaysNothing) {
  const Ended ended = stop([] {
    const HoldEnd hold("it is saved");
    while (!interrupted()) std::this_thread::sleep_for(milliseconds(5));
    ::_exit(8);
  });
  EXPECT_EQ(ended.code, 8);
  EXPECT_EQ(ended.words, "");
}

TEST(Interrupts, WhatAllDoOrNoneHearsNothing) {
  const Ended ended = stop([] {
    {
      const Uninterrupted together;
      std::this_thread::sleep_for(milliseconds(700));
      if (interrupted()) ::_exit(8);
    }
    ::_exit(interrupted() ? 9 : 10);
  });
  EXPECT_EQ(ended.code, 9);
}

TEST(Interrupts, ChildrenAreToldAndWaitedFor) {
  const Ended ended = stop([] {
    const auto child =
        start_process({"/bin/sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.05; done"}, "/dev/null");
    ::_exit(child ? wait_for_process(*child) : 99);
  });
  EXPECT_EQ(ended.code, 5);
  EXPECT_EQ(ended.words, "");
}

// One thread's reason is nobody else's, holds through an Uninterrupted, and is one of several.
TEST(Interrupt, IsAThreadsOwnWhereItHasAReason) {
  bool outer = false, inner = false;
  const Uninterrupted others;
  {
    const StopsWhen first([&] { return outer; });
    EXPECT_FALSE(interrupted());
    {
      const StopsWhen second([&] { return inner; });
      inner = true;
      EXPECT_TRUE(interrupted());
      std::thread([] { EXPECT_FALSE(interrupted()); }).join();
      inner = false;
      outer = true;
      EXPECT_TRUE(interrupted());
    }
    EXPECT_TRUE(interrupted());
  }
  EXPECT_FALSE(interrupted());
}

}  // namespace
}  // namespace superstep
