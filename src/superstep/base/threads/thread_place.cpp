#include "superstep/base/threads/thread_place.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace superstep {
namespace {

// To this processor at once; then it may run where it could before. 0: the calling thread.
void move(int thread, int processor, const cpu_set_t& before) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  if (sched_setaffinity(thread, sizeof one, &one) == 0) sched_setaffinity(thread, sizeof before, &before);
}

// Asked of the system once.
struct Self {
  int thread = gettid();
  clockid_t clock = CLOCK_MONOTONIC;
  Self() { pthread_getcpuclockid(pthread_self(), &clock); }
};

}  // namespace

void ThreadPlace::enter() {
  thread_local const Self self;
  if (thread_.load(std::memory_order_relaxed) != self.thread) {
    clock_.store(self.clock, std::memory_order_relaxed);
    thread_.store(self.thread, std::memory_order_relaxed);
  }
  processor_.store(sched_getcpu(), std::memory_order_relaxed);
}

std::chrono::nanoseconds ThreadPlace::processor_time() const {
  timespec time{};
  clock_gettime(clock_.load(std::memory_order_relaxed), &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void ThreadPlace::exchange_with_caller() {
  if (exchanging_.exchange(true)) return;
  const int here = sched_getcpu(), there = processor_.load(std::memory_order_relaxed),
            thread = thread_.load();
  cpu_set_t own, others;
  const bool known = thread != 0 && here >= 0 && there >= 0 && here != there &&
                     sched_getaffinity(0, sizeof own, &own) == 0 &&
                     sched_getaffinity(thread, sizeof others, &others) == 0;
  if (known && CPU_ISSET(here, &others) && CPU_ISSET(there, &own)) {
    exchanges_.fetch_add(1, std::memory_order_relaxed);
    processor_.store(here, std::memory_order_relaxed);
    move(thread, here, others);
    move(0, there, own);
  }
  exchanging_.store(false);
}

}  // namespace superstep
