#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/system/guarded_child.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/message.h"
#include "tests/base/locked_file.h"

namespace superstep {
namespace {

constexpr std::uint64_t memory = 256 << 20;

[[noreturn]] void crash() {
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
  std::abort();
}

void take(std::size_t bytes) {
  std::vector<char> block(bytes);
  volatile char* last = &block.back();
  *last = 1;
}

// What the children of these tests do: the request is an order.
ChildAnswer obey(std::string_view order) {
  if (order == "crash") crash();
  if (order == "leave") ::_exit(7);
  if (order == "turn")
    for (std::atomic<long> turns = 0;;) ++turns;
  if (order == "sleep") ::sleep(100);
  if (order == "process") return {std::to_string(::getpid()), {}};
  if (order == "take") {
    try {
      take(std::size_t{4} << 30);
    } catch (const std::bad_alloc&) {
      return {"no room", {}};
    }
    return {"there was room", {}};
  }
  SharedBlock block(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) block.memory().get()[i] = std::byte(order[i]);
  return {std::string(order) + "!", block};
}

std::string ending(GuardedChild& child, std::string_view order) {
  const auto answer = child.ask(order);
  EXPECT_FALSE(answer.has_value());
  return answer ? answer->bytes : answer.error();
}

TEST(GuardedChild, HoldsNoFileThatTheProgramHadOpen) {
  test::LockedFile file(std::filesystem::temp_directory_path() /
                        ("superstep-locked-" + std::to_string(::getpid())));
  GuardedChild child(obey, memory, 10);
  EXPECT_TRUE(child.ask("anything"));
  EXPECT_TRUE(file.is_free_once_closed());
}

TEST(GuardedChild, AnswersWithBytesAndWithMemory) {
  GuardedChild child(obey, memory, 20);
  for (const std::string order : {"one", "two", ""}) {
    const auto answer = child.ask(order);
    ASSERT_TRUE(answer) << answer.error();
    EXPECT_EQ(answer->bytes, order + "!");
    ASSERT_EQ(answer->block.size(), order.size());
    const auto* text = reinterpret_cast<const char*>(answer->block.memory().get());
    EXPECT_EQ(order.empty() ? "" : std::string(text, order.size()), order);
  }
  const std::string large(3 << 20, 'x');
  const auto answer = child.ask(large);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->bytes.size(), large.size() + 1);
  EXPECT_EQ(answer->block.memory().get()[large.size() - 1], std::byte('x'));
}

TEST(GuardedChild, MemoryOutlivesTheChild) {
  SharedBlock block;
  {
    GuardedChild child(obey, memory, 20);
    block = child.ask("kept")->block;
  }
  EXPECT_EQ(block.memory().get()[3], std::byte('t'));
}

TEST(GuardedChild, SaysHowItEnded) {
  GuardedChild crashing(obey, memory, 20), leaving(obey, memory, 20);
  EXPECT_EQ(ending(crashing, "crash"), "crashed (Segmentation fault)");
  EXPECT_EQ(ending(crashing, "one"), "has ended");
  EXPECT_EQ(ending(leaving, "leave"), "ended with status 7");
}

TEST(GuardedChild, EndlessWorkIsStopped) {
  GuardedChild child(obey, memory, 0.1);
  EXPECT_EQ(ending(child, "turn"), "did not come to an end");
}

TEST(GuardedChild, MemoryHasALimit) {
  GuardedChild child(obey, memory, 20);
  const auto answer = child.ask("take");
  EXPECT_EQ(answer ? answer->bytes : "no room", "no room");  // under a sanitizer the child may end instead
}

TEST(GuardedChild, AnInterruptIsHeardWhileWaiting) {
  GuardedChild child(obey, memory, 20);
  request_interrupt();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(child.ask("quick"));  // what comes at once is taken
  EXPECT_THROW(static_cast<void>(child.ask("sleep")), Error);
  clear_interrupt();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(GuardedChild, NoChildIsLeftBehind) {
  pid_t process = 0;
  {
    GuardedChild child(obey, memory, 20);
    process = child.process();
    EXPECT_EQ(child.ask("process")->bytes, std::to_string(process));
  }
  EXPECT_NE(::kill(process, 0), 0);
}

TEST(GuardedChild, ThreadsHaveChildrenOfTheirOwn) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([i] {
      for (int round = 0; round < 10; ++round) {
        GuardedChild child(obey, memory, 20);
        if (round % 3 == 0) {
          EXPECT_EQ(ending(child, "crash"), "crashed (Segmentation fault)");
        } else {
          EXPECT_EQ(child.ask(std::to_string(i))->bytes, std::to_string(i) + "!");
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Message, ComesBackAndIsNotBelieved) {
  MessageWriter out;
  out.put(std::int64_t{-5}).put(2.5).put(true).put(std::string_view("text")).put(std::vector<int>{1, 2});
  const std::string bytes = out.take();
  MessageReader in(bytes);
  EXPECT_EQ(in.get<std::int64_t>(), -5);
  EXPECT_EQ(in.get<double>(), 2.5);
  EXPECT_TRUE(in.flag());
  EXPECT_EQ(in.text(), "text");
  EXPECT_EQ(in.numbers<int>(), (std::vector{1, 2}));
  EXPECT_THROW(in.flag(), Error);
  MessageReader cut(std::string_view(bytes).substr(0, 19));
  cut.get<std::int64_t>();
  cut.get<double>();
  cut.flag();
  EXPECT_THROW(cut.text(), Error);
}

}  // namespace
}  // namespace superstep
