// The processor of a thread that others wait for, and whether it has it.
//
// Where another process takes a processor, a thread of ours stands behind it for milliseconds, with a piece
// of work that nobody else can finish, while the thread that waits for it leaves its own processor idle. The
// system evens that out too late: it looks when a processor falls idle, and not again for some milliseconds.
// So who waits gives the other one its processor.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace superstep {

// On a line of its own: its thread writes it whenever it begins something.
class alignas(64) ThreadPlace {
 public:
  // By the thread itself, before work that others may wait for.
  void enter();

  // The time of processors that the thread has had so far: what does not grow does not run.
  std::chrono::nanoseconds processor_time() const;
  // How often it was given another processor.
  std::uint32_t exchanges() const { return exchanges_.load(std::memory_order_relaxed); }
  // By another thread of the process, which has nothing to do: the thread gets the caller's processor, and
  // the caller that one's. They may run where they could run before. Nothing where one of them may not run
  // there, or where another caller is at it.
  void exchange_with_caller();

 private:
  std::atomic<int> thread_{0}, processor_{-1};
  std::atomic<clockid_t> clock_{CLOCK_MONOTONIC};
  std::atomic<std::uint32_t> exchanges_{0};
  std::atomic<bool> exchanging_{false};
};

}  // namespace superstep
