// The pool of threads that all parallel work runs on.
//
// Work items are claimed one by one from a shared counter, and the calling thread claims too: when another
// process has taken a core, the threads that do run take the items that the sleeping one would have had,
// and the caller can finish alone. Idle workers spin for a bounded time, then sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "superstep/base/function_ref.h"

namespace superstep {

class ThreadPool {
 public:
  // `threads` counts the caller: ThreadPool(1) starts no thread. At least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(item, worker) once for every item in [0, items), worker in [0, threads()). Returns when all
  // are done; the first exception thrown by a body is rethrown here and the items not yet claimed are
  // skipped. Which worker gets which item is not determined: write results by item. Not re-entrant: one
  // call at a time, none from inside a body.
  void parallel_for(std::int64_t items, FunctionRef<void(std::int64_t item, int worker)> body);

 private:
  struct Job;
  void worker_main(int worker);
  static void claim_items(Job& job, int worker);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<Job*> job_{nullptr};
  int inside_ = 0;  // workers that hold job_; guarded by mutex_
  bool stopping_ = false;
};

// Logical processors this process may run on (its affinity mask, not the whole machine).
int available_processors();

}  // namespace superstep
